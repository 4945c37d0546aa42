"""An incident in words and numbers: the same ones in the table, on the screen and in the summary."""

from __future__ import annotations

from collections.abc import Sequence

from supervisor.cli import amounts
from supervisor.core.incident import Incident, Outcome
from supervisor.core.ledger import Category, Times

# What the run does anyway is no cost of the incident.
NO_COST = (Category.TRAIN,)


def cause(incident: Incident) -> str:
    return incident.verdict.cause.value if incident.verdict else "-"


def reason(incident: Incident) -> str:
    return incident.verdict.reason.value if incident.verdict else "-"


def blame(incident: Incident) -> str:
    return incident.verdict.blame if incident.verdict else "-"


def action(incident: Incident) -> str:
    """`SwapSpare`, the stable word; the incident's own `action` says it in a sentence."""
    return incident.rung.value if incident.rung else "-"


def lost_ms(incident: Incident) -> int | None:
    """Milliseconds that it cost, without what a person chose to wait; None while it is open."""
    if incident.outcome is Outcome.OPEN:
        return None
    return incident.lost_ms


def by_category(times: Times) -> list[tuple[Category, int]]:
    """What was lost, the largest part first, without what took no time."""
    parts = [(category, times.of(category)) for category in Category if category not in NO_COST]
    return sorted(((category, ms) for category, ms in parts if ms), key=lambda part: -part[1])


def sentence(incident: Incident) -> str:
    """What happened and what was done about it."""
    what = incident.verdict.because if incident.verdict else "something ended the attempt; it is being looked into"
    done = f" -> {incident.action}" if incident.action else ""
    return f"{incident.name}: {what}{done}"


def closing(incident: Incident) -> str:
    """How it ended and what it cost."""
    steps = f", {incident.steps_lost} steps lost" if incident.steps_lost is not None else ""
    cost = lost_ms(incident)
    spent = f", {amounts.seconds(cost)} s lost" if cost is not None else ""
    return f"incident {incident.name} is {incident.outcome.value}{steps}{spent}"


class Closings:
    """Tells of each incident that ends while one looks; those that had ended before are no news."""

    def __init__(self) -> None:
        self._seen: dict[int, Outcome] | None = None

    def new(self, incidents: Sequence[Incident]) -> list[Incident]:
        before, self._seen = self._seen, {incident.number: incident.outcome for incident in incidents}
        if before is None:
            return []
        ended = (i for i in incidents if i.outcome is not Outcome.OPEN)
        return [i for i in ended if before.get(i.number) is not i.outcome]
