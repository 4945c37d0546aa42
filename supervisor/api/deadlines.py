"""How long each phase of the trainer may stand still before it is suspected to hang."""

from __future__ import annotations

from typing import Annotated, Any

from supervisor.api.duration import Between, Duration
from supervisor.api.rules import Rule
from supervisor.api.section import Effect, Section, described

Bound = Annotated[Duration, Between("100ms", "24h")]


def _wrong_way_round(floor: Duration | None, ceiling: Duration | None) -> str | None:
    if floor is None or ceiling is None or floor <= ceiling:
        return None
    return f"found the floor {floor} above the ceiling {ceiling}, allowed is a floor of at most the ceiling"


class Limits(Section):
    """Bounds of the learned deadline of one phase; before anything was learned the ceiling is in force."""

    rules = (
        Rule(
            "floor",
            ("floor", "ceiling"),
            "!has(self.floor) || !has(self.ceiling) || duration(self.floor) <= duration(self.ceiling)",
            _wrong_way_round,
        ),
    )

    floor: Bound | None = described("Never suspected earlier than this.", Effect.AT_ONCE, None)
    ceiling: Bound | None = described("Never suspected later than this.", Effect.AT_ONCE, None)


def _limits(text: str, floor: str, ceiling: str, **constraints: Any) -> Any:
    limits = Limits(floor=Duration.parse(floor), ceiling=Duration.parse(ceiling))
    return described(
        f"{text} Left out: {floor} to {ceiling}.", Effect.AT_ONCE, default_factory=lambda: limits, **constraints
    )


class Deadlines(Section):
    """Limits per phase of the trainer contract. A bound that is left out keeps its default."""

    import_: Limits = _limits("Imports.", "1m", "15m", alias="import")
    init: Limits = _limits("Joining the other ranks.", "1m", "30m")
    restore: Limits = _limits("Reading a checkpoint; bytes that move start it anew.", "1m", "30m")
    compile: Limits = _limits("Compiling, or loading compiled programs.", "2m", "30m")
    first_step: Limits = _limits("From there to the first completed step.", "1m", "30m")
    step: Limits = _limits("From one completed step to the next.", "2s", "15m")
    save: Limits = _limits("The part of a save that blocks; bytes that move start it anew.", "1m", "30m")
    eval: Limits = _limits("One evaluation.", "1m", "30m")
    exit: Limits = _limits("From the last step to the end of the process.", "1m", "10m")
