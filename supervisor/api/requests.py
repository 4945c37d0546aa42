"""What a person asks of a run. Each id is carried out once, however often the file is applied."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from supervisor.api.rules import exactly_one_of
from supervisor.api.section import Effect, Identifier, Section, described


class CheckpointNow(Section):
    """Save at the next step and go on."""


class Stop(Section):
    """Save at the next step, end the ranks and suspend the run."""


class Resume(Section):
    """Continue a held, suspended or failed run."""

    from_step: Annotated[int, Field(ge=0, le=10**12)] | None = described(
        "Continue from the checkpoint of this step; left out, from the newest good one of the lineage.",
        Effect.AT_ONCE,
        None,
    )


class Rollback(Section):
    """Go back to an earlier step of a run that trains, is held or is suspended, and pass over some of its data."""

    to_step: Annotated[int, Field(ge=0, le=10**12)] = described(
        "The step to go back to; a checkpoint of it must exist on the lineage.", Effect.AT_ONCE
    )
    skip_batches: Annotated[int, Field(ge=0, le=10**6)] = described(
        "How many batches after that step are passed over, such as those around a loss spike.", Effect.AT_ONCE, 0
    )


class Request(Section):
    """One request: an id and what is asked."""

    rules = (exactly_one_of("checkpointNow", "stop", "resume", "rollback"),)

    id: Identifier = described("Names the request; status.requests shows its outcome under it.", Effect.AT_ONCE)
    checkpoint_now: CheckpointNow | None = described("Save a checkpoint now.", Effect.AT_ONCE, None)
    stop: Stop | None = described("Save and suspend.", Effect.AT_ONCE, None)
    resume: Resume | None = described("Continue.", Effect.AT_ONCE, None)
    rollback: Rollback | None = described("Go back to an earlier step.", Effect.AT_ONCE, None)
