"""Incidents in a table, one line each; in wide form with what each category of time cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from supervisor.cli import amounts, incident_words
from supervisor.cli.table import table
from supervisor.core.incident import Incident

HEADERS = ("NAME", "TIME", "CAUSE", "BLAME", "ACTION", "STEPS-LOST", "SECONDS-LOST", "OUTCOME")
RIGHT = ("STEPS-LOST", "SECONDS-LOST")


Rewrite = Callable[[str], str]


def incident_table(incidents: Sequence[Incident], wide: bool, rewrite: Rewrite = str) -> list[str]:
    """`rewrite`: makes what the core says fit for typing it here (`run_lookup.as_typed`)."""
    headers = (*HEADERS, "ATTEMPT", "REASON", "SECONDS", "WHAT") if wide else HEADERS
    return table(headers, [_row(incident, wide, rewrite) for incident in incidents], RIGHT)


def _row(incident: Incident, wide: bool, rewrite: Rewrite) -> tuple[str, ...]:
    when = amounts.day_and_clock(incident.opened_ms) if wide else amounts.clock(incident.opened_ms)
    cells = (
        incident.name,
        when,
        incident_words.cause(incident),
        incident_words.blame(incident),
        incident_words.action(incident),
        amounts.NONE if incident.steps_lost is None else str(incident.steps_lost),
        amounts.seconds(incident_words.lost_ms(incident)),
        incident.outcome.value,
    )
    if not wide:
        return cells
    parts = incident_words.by_category(incident.cost)
    spent = ",".join(f"{category.value}={amounts.seconds(ms)}" for category, ms in parts) or amounts.NONE
    sentence = incident_words.sentence(incident).removeprefix(f"{incident.name}: ")
    return (*cells, str(incident.attempt), incident_words.reason(incident), spent, rewrite(sentence))
