"""The `TrainingRun` resource: one set of types for files, `-o yaml` and (later) the CRD."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from supervisor.api.checkpoint import Checkpoint
from supervisor.api.metadata import Metadata
from supervisor.api.placement import Fleet, Layout
from supervisor.api.recovery import Recovery
from supervisor.api.requests import Request
from supervisor.api.rules import unique
from supervisor.api.schedule import Schedule
from supervisor.api.section import Effect, Section, described
from supervisor.api.status import Status
from supervisor.api.trainer import Trainer

API_VERSION = "supervisor.marin.community/v1alpha1"
KIND = "TrainingRun"


class Spec(Section):
    """What the user wants."""

    rules = (unique("requests", "id"),)

    suspend: bool = described("Save, end the ranks and hold no nodes until it is false again.", Effect.AT_ONCE, False)
    fleet: Fleet = described("Nodes to draw from.", Effect.NEXT_ATTEMPT, default_factory=Fleet)
    layout: Layout = described("Racks, nodes and ranks to train on.", Effect.NEXT_ATTEMPT)
    trainer: Trainer = described("The program of every rank.", Effect.NEXT_ATTEMPT)
    checkpoint: Checkpoint = described(
        "Where checkpoints lie and which are kept.", Effect.NEXT_CHECKPOINT, default_factory=Checkpoint
    )
    recovery: Recovery = described("Deadlines and limits of recovery.", Effect.AT_ONCE, default_factory=Recovery)
    schedule: Schedule = described("How much to train, and until when.", Effect.NEXT_ATTEMPT, default_factory=Schedule)
    requests: Annotated[tuple[Request, ...], Field(max_length=64)] = described(
        "What a person asks of a running or held run.", Effect.AT_ONCE, ()
    )


class TrainingRun(Section):
    """One training job."""

    api_version: Literal["supervisor.marin.community/v1alpha1"] = Field(description="Version of this schema.")
    kind: Literal["TrainingRun"] = Field(description="Kind of object.")
    metadata: Metadata = Field(description="Name and labels.")
    spec: Spec = Field(description="What the user wants.")
    status: Status | None = Field(None, description="What the supervisor last reported; ignored in a file.")
