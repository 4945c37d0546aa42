"""The record of one loss of progress: what was concluded, what was done, what it cost."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import Enum

from supervisor.core.ledger import Times
from supervisor.core.observation import Checkpoint
from supervisor.core.reasons import Reason
from supervisor.core.verdict import Verdict


class Outcome(Enum):
    OPEN = "open"
    RECOVERED = "recovered"  # the run has completed a step that it had not completed before
    SUPERSEDED = "superseded"  # another fault came before the recovery was complete
    HELD = "held"  # a person must act


@dataclass(frozen=True, slots=True)
class Incident:
    """`spent`: the run's ledger when it was opened. `rung` is set once the next attempt starts, or the run is held.

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
    def name(self) -> str:
        return f"i{self.number:04d}"


def closed(incident: Incident, outcome: Outcome, spent: Times, now_ms: int) -> Incident:
    return replace(incident, outcome=outcome, closed_ms=now_ms, cost=_between(incident.spent, spent))


def _between(before: Times, after: Times) -> Times:
    """What was added since. Time that was moved out of a category (train, once a fault is found) counts as none."""
    return Times(**{f.name: max(0, getattr(after, f.name) - getattr(before, f.name)) for f in fields(Times)})
