"""Where checkpoints lie, how often they are written and which are kept."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from supervisor.api.duration import Between, Duration
from supervisor.api.rules import at_most_one_of
from supervisor.api.section import Effect, Path, Section, described


class Checkpoint(Section):
    """The checkpoints of a run. With neither everySeconds nor everySteps the trainer's own configuration decides."""

    rules = (at_most_one_of("everySeconds", "everySteps"),)

    directory: Path = described(
        "Root of the checkpoint tree, on a file system that all nodes share. A relative one lies in the run's own "
        "directory.",
        Effect.REFUSED,
        "checkpoints",
    )
    every_seconds: Annotated[int, Field(ge=1, le=604_800)] | None = described(
        "Save whenever this many seconds have passed since the last save began.", Effect.NEXT_ATTEMPT, None
    )
    every_steps: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = described(
        "Save after every so many steps.", Effect.NEXT_ATTEMPT, None
    )
    keep_newest: int = described(
        "Checkpoints of the lineage to keep. At least 2: the one before is used when the newest is damaged.",
        Effect.NEXT_CHECKPOINT,
        3,
        ge=2,
        le=1000,
    )
    keep_every_steps: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = described(
        "Besides the newest, keep for good the first checkpoint at or after each multiple of so many steps.",
        Effect.NEXT_CHECKPOINT,
        None,
    )
    unsaved_limit: Annotated[Duration, Between("1s", "240h")] = described(
        "How long saves may fail, while training goes on, before the run is held.",
        Effect.AT_ONCE,
        default_factory=lambda: Duration.parse("6h"),
        json_schema_extra={"default": "6h"},
    )
    verify: bool = described(
        "Use only checkpoints whose manifest verifies. With false, those reported as committed are trusted.",
        Effect.NEXT_ATTEMPT,
        True,
    )
