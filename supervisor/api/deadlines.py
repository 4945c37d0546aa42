"""How long each phase of the trainer may stand still before it is suspected to hang."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from supervisor.api.duration import Between, Duration
from supervisor.api.rules import Rule
from supervisor.api.section import Effect, Section, described

Bound = Annotated[Duration, Between("100ms", "24h")]


def _bound(text: str, default: str) -> Any:
    return described(
        text, Effect.AT_ONCE, default_factory=lambda: Duration.parse(default), json_schema_extra={"default": default}
    )


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


def _limits(text: str) -> Any:
    return described(text, Effect.AT_ONCE, default_factory=Limits)


class Deadlines(Section):
    """Limits per phase of the trainer contract. What is left out keeps the default that its description names."""

    import_: Limits = Field(
        default_factory=Limits, alias="import", description=f"Imports, from 1m to 15m. {Effect.AT_ONCE}"
    )
    init: Limits = _limits("Joining the other ranks, from 1m to 30m.")
    restore: Limits = _limits("Reading a checkpoint, from 1m to 30m; bytes that move start it anew.")
    compile: Limits = _limits("Compiling, or loading compiled programs, from 2m to 30m.")
    first_step: Limits = _limits("From there to the first completed step, from 1m to 30m.")
    step: Limits = _limits("From one completed step to the next, from 2s to 15m.")
    save: Limits = _limits("The part of a save that blocks, from 1m to 30m; bytes that move start it anew.")
    eval: Limits = _limits("One evaluation, from 1m to 30m.")
    exit: Limits = _limits("From the last step to the end of the process, from 1m to 10m.")
