"""The record of one loss of progress: what was concluded, what was done, what it cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from supervisor.core.ledger import Times
from supervisor.core.observation import Checkpoint
from supervisor.core.reasons import Reason
from supervisor.core.verdict import Verdict


class Outcome(Enum):
    OPEN = "open"
    RECOVERED = "recovered"  # the run has completed a step that it had not completed before
    SUPERSEDED = "superseded"  # another fault, or a person who went back, came before the recovery was complete
    HELD = "held"  # a person must act
    TOLERATED = "tolerated"  # known, and cheaper to live with than to mend


@dataclass(frozen=True, slots=True)
class Incident:
    """`spent`: the run's ledger when it was opened; where the failed attempt completed no step, when that started.
    `rung` is set once the next attempt starts, or the run is held.

    `step`: the highest step that the run had completed; a later one ends the incident. `reached`: how far the failed
    attempt itself had come, so that a fault during replay counts only the steps that it cost.
    """

    number: int
    attempt: int
    opened_ms: int
    step: int
    spent: Times
    verdict: Verdict | None = None
    rung: Reason | None = None
    action: str = ""
    resumed_from: Checkpoint | None = None
    steps_lost: int | None = None
    cost: Times = Times()
    outcome: Outcome = Outcome.OPEN
    closed_ms: int | None = None
    reached: int = 0

    @property
    def lost_ms(self) -> int:
        """What it cost, without training, and without time in which the run waited for a person."""
        return self.cost.total() - self.cost.train - self.cost.suspended - self.cost.held

    @property
    def name(self) -> str:
        return f"i{self.number:04d}"


def closed(incident: Incident, outcome: Outcome, spent: Times, now_ms: int) -> Incident:
    return replace(incident, outcome=outcome, closed_ms=now_ms, cost=spent.since(incident.spent))
