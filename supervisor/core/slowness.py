"""Slow, not dead: steps have become longer and stay so, and one node's own work is longer than its peers'."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from supervisor.core.decision import Pass
from supervisor.core.incident import Incident, Outcome, closed
from supervisor.core.memory import Attempt, Stage
from supervisor.core.pace import current_ms, pace_of
from supervisor.core.reasons import Reason
from supervisor.core.spec import Cause
from supervisor.core.verdict import Verdict
from supervisor.core.watching import ranks_of


@dataclass(frozen=True, slots=True)
class SlowNode:
    """`behind_ms`: by how much its own work in a step exceeds its peers' median."""

    node: str
    own_ms: int
    peers_ms: float

    @property
    def behind_ms(self) -> float:
        return self.own_ms - self.peers_ms


def judge_slowness(p: Pass) -> Pass:
    """Name the node that slows the gang, once, after the steps have been slower for as long as the spec says."""
    attempt = p.memory.attempt
    if attempt is None or attempt.stage is not Stage.STEPPING or attempt.slow_node:
        return p
    pace = pace_of(p.memory, len(attempt.placement.racks))
    now_ms = current_ms(pace)
    best = pace.best if pace else None
    slow = slowest_node(own_work(p)) if now_ms is not None else None
    shifted = now_ms is not None and best is not None and now_ms >= best * (1 + p.spec.slow_share)
    if slow is None or best is None or not shifted or slow.behind_ms < p.spec.slow_share * best:
        return p.with_attempt(attempt, slow_since_ms=None) if attempt.slow_since_ms is not None else p
    if attempt.slow_since_ms is None:
        p = p.with_attempt(attempt, slow_since_ms=p.now)
        return p.wake(p.now + p.spec.slow_for_ms)
    if p.now < attempt.slow_since_ms + p.spec.slow_for_ms:
        return p.wake(attempt.slow_since_ms + p.spec.slow_for_ms)
    return _name(p, attempt, slow, now_ms or best, best)


def own_work(p: Pass) -> dict[str, int]:
    """Per node, the own work of its slowest rank in a step, in ms; nodes that do not say are left out."""
    work: dict[str, int] = {}
    for node, rank in ranks_of(p):
        if rank.own_ms > 0:
            work[node] = max(work.get(node, 0), rank.own_ms)
    return work


def slowest_node(work: dict[str, int]) -> SlowNode | None:
    """The one node whose own work stands out. None with fewer than two to compare."""
    if len(work) < 2:
        return None
    node = max(work, key=lambda name: work[name])
    peers = [ms for name, ms in work.items() if name != node]
    return SlowNode(node, work[node], median(peers))


def _name(p: Pass, attempt: Attempt, slow: SlowNode, now_ms: float, best: float) -> Pass:
    """An incident that is closed at once: nothing is lost but time, and training goes on."""
    share = 100 * (now_ms / best - 1)
    because = (
        f"steps take {now_ms:.0f} ms instead of {best:.0f} (+{share:.0f} %); node {slow.node} works {slow.own_ms} ms a "
        f"step for itself, its peers {slow.peers_ms:.0f}"
    )
    verdict = Verdict(Cause.HARDWARE, f"node {slow.node}", Reason.NODE_SLOW, because, 0.8, (), slow.node)
    p = p.with_attempt(attempt, slow_node=slow.node).note(Reason.NODE_SLOW, because)
    if p.memory.incident is not None:
        return p
    number = p.memory.incidents + 1
    action = "it is replaced at the next checkpoint if a spare is there and that pays"
    incident = Incident(
        number, attempt.number, p.now, attempt.completed, p.memory.ledger.run, verdict, action=action, steps_lost=0
    )
    p = p.remember(incidents=number)
    return p.record(None, closed(incident, Outcome.TOLERATED, p.memory.ledger.run, p.now))
