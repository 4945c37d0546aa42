"""What is new in a report, and whether it can wait: the doorbell's one rule, shared by both sides of sync."""

from __future__ import annotations

from collections.abc import Iterable

from supervisor.wire.messages import EventRecord, GangReport, RankReport, Report

URGENT_EVENTS = frozenset({"alarm", "checkpoint", "hello", "phase"})


def news(before: Report | None, report: Report, events: Iterable[EventRecord]) -> tuple[bool, str]:
    """(urgent, reason). Urgent: exits, changes of state, an attempt's first step, results, alarms and the like."""
    for record in events:
        if (name := record.event.get("event")) in URGENT_EVENTS:
            return True, f"{name} event"
    if before is None:
        return True, "first report"
    if {r.id for r in report.results} - {r.id for r in before.results}:
        return True, "task result"
    if before.order_key != report.order_key or before.offer != report.offer:
        return True, "order taken"
    older = {(gang.kind, gang.number): gang for gang in before.gangs}
    if older.keys() != {(gang.kind, gang.number) for gang in report.gangs}:
        return True, "gangs changed"
    for gang in report.gangs:
        if reason := gang_news(older[gang.kind, gang.number], gang):
            return True, reason
    return False, "progress"


def gang_news(before: GangReport, gang: GangReport) -> str | None:
    if before.state != gang.state:
        return "gang state"
    ranks = {rank.rank: rank for rank in before.ranks}
    return next((reason for rank in gang.ranks if (reason := rank_news(ranks.get(rank.rank), rank))), None)


def rank_news(before: RankReport | None, rank: RankReport) -> str | None:
    if before is None or before.state != rank.state:
        return "exit" if rank.state == "exited" else "rank state"
    if before.phase != rank.phase:
        return "phase"
    return "first step" if before.completed == 0 < rank.completed else None
