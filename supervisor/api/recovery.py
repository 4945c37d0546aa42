"""How long to wait, how often to try again, and when to stop and ask a person."""

from __future__ import annotations

from typing import Annotated, Literal

from supervisor.api.budget import Budget
from supervisor.api.deadlines import Deadlines
from supervisor.api.duration import Between, Duration
from supervisor.api.section import Effect, Section, described


def _budget(text: str, default: str) -> Budget:
    field: Budget = described(
        text, Effect.AT_ONCE, default_factory=lambda: Budget.parse(default), json_schema_extra={"default": default}
    )
    return field


def _duration(text: str, effect: Effect, default: str) -> Duration:
    field: Duration = described(
        text, effect, default_factory=lambda: Duration.parse(default), json_schema_extra={"default": default}
    )
    return field


class Budgets(Section):
    """Faults forgiven within a sliding window, by cause. A fault of a gang counts once, however many ranks it ends."""

    hardware: Budget = _budget("Nodes, racks, links and devices that failed.", "30/24h")
    software: Budget = _budget("Crashes of the trainer.", "5/24h")
    storage: Budget = _budget("Saves and restores that failed.", "5/24h")
    unknown: Budget = _budget("Faults whose root could not be named.", "10/24h")
    config: Budget = _budget(
        "Configuration errors. The first one holds the run at once, and only a person continues it; the number is "
        "recorded only: no decision depends on it yet.",
        "2/24h",
    )


class Recovery(Section):
    """Deadlines and limits of recovery."""

    startup_deadline: Annotated[Duration, Between("1s", "24h")] = _duration(
        "The longest from the start of an attempt to its first completed step.", Effect.NEXT_ATTEMPT, "45m"
    )
    worker_lost: Annotated[Duration, Between("500ms", "1h")] = _duration(
        "How long a worker whose connections are gone may take to return before it counts as lost.",
        Effect.AT_ONCE,
        "5s",
    )
    stop_grace: Annotated[Duration, Between("0s", "1h")] = _duration(
        "How long a rank that was asked to end may take before it is killed.", Effect.AT_ONCE, "10s"
    )
    deadlines: Deadlines = described(
        "How long each phase may stand still before it is suspected to hang: a multiple of what this run has shown, "
        "within these limits.",
        Effect.AT_ONCE,
        default_factory=Deadlines,
    )
    growing: Literal["WhenItPays", "Always", "Never"] = described(
        "Whether a run on fewer racks goes back to more, at a checkpoint: when the time that it saves until the last "
        "step exceeds what a restart costs, always, or never.",
        Effect.AT_ONCE,
        "WhenItPays",
    )
    settle: Annotated[Duration, Between("0s", "24h")] = _duration(
        "How long a rack must have been whole and idle before the run grows back to it.", Effect.AT_ONCE, "10m"
    )
    slow_for: Annotated[Duration, Between("1s", "24h")] = _duration(
        "How long steps must have been a tenth slower before a node is blamed for it.", Effect.AT_ONCE, "5m"
    )
    budgets: Budgets = described(
        "Faults that are forgiven, by cause; a run that used one up is held.", Effect.AT_ONCE, default_factory=Budgets
    )
    node_faults: Budget = _budget(
        "Faults blamed on one node before it is set aside for the rest of the window.", "3/24h"
    )
    no_progress_limit: int = described(
        "Attempts in a row that reach no newer committed checkpoint before the run is held, whatever the budgets say.",
        Effect.AT_ONCE,
        3,
        ge=1,
        le=100,
    )
