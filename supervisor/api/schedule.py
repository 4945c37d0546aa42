"""How much to train, and until when."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from supervisor.api.section import Effect, Section, described
from supervisor.api.timestamp import Timestamp


class Schedule(Section):
    """The plan as the user wrote it."""

    token_budget: Annotated[int, Field(ge=1, le=10**18)] | None = described(
        "Tokens to train on, handed to the trainer in its plan. Left out, the trainer's own configuration decides.",
        Effect.NEXT_ATTEMPT,
        None,
    )
    deadline: Timestamp | None = described(
        "When the run should be done. Recorded only: no decision depends on it yet.", Effect.AT_ONCE, None
    )
    planned_mfu: Annotated[float, Field(gt=0, le=1)] | None = described(
        "The share of the devices' peak that the plan counts on. Recorded only: no decision depends on it yet.",
        Effect.AT_ONCE,
        None,
        alias="plannedMFU",
    )
