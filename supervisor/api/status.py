"""What the supervisor reports about a run: a digest for people and `kubectl wait`, never an input to a decision."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from supervisor.api.section import Identifier, Section
from supervisor.api.timestamp import Timestamp

Phase = Literal["Pending", "Starting", "Running", "Recovering", "Suspended", "Held", "Succeeded", "Failed"]

_Reason = Annotated[str, StringConstraints(max_length=128, pattern=r"^([A-Za-z][A-Za-z0-9]*)?$")]
_Message = Annotated[str, StringConstraints(max_length=4096)]
_Name = Annotated[str, StringConstraints(max_length=253)]
_Count = Annotated[int, Field(ge=0, le=10**18)]
_Number = Annotated[float, Field(ge=-1e30, le=1e30)]
_Share = Annotated[float, Field(ge=0, le=1)]


def _reported(text: str) -> Any:
    return Field(None, description=text)


class PlacedLayout(Section):
    """The layout of the attempt that runs, or ran last."""

    racks: _Count = Field(description="Racks in use.")
    nodes_per_rack: _Count = Field(description="Training nodes in each.")
    ranks_per_node: _Count = Field(description="Ranks on each node.")


class Condition(Section):
    """One aspect of the run, in the form that `kubectl wait --for=condition=...` reads."""

    type: Annotated[str, StringConstraints(max_length=316, min_length=1)] = Field(description="Name of the aspect.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    reason: _Reason = Field("", description="Stable CamelCase reason of the last change.")
    message: _Message = Field("", description="The reason in a sentence.")
    last_transition_time: Timestamp | None = _reported("When the status last changed.")
    observed_generation: _Count | None = _reported("The metadata.generation that this was judged for.")


class Ledger(Section):
    """Where the run's time went, in whole milliseconds. The categories add up to the elapsed time."""

    train: _Count = Field(0, description="Milliseconds in steps that advanced the run.")
    replay: _Count = Field(0, description="Milliseconds in steps that were done before.")
    save: _Count = Field(0, description="Milliseconds that saving blocked training.")
    detect: _Count = Field(0, description="Milliseconds from a fault until it was noticed.")
    stop: _Count = Field(0, description="Milliseconds of ending the ranks of an attempt.")
    place: _Count = Field(0, description="Milliseconds of choosing nodes.")
    start: _Count = Field(0, description="Milliseconds of starting ranks and connecting them.")
    compile: _Count = Field(0, description="Milliseconds of compilation.")
    restore: _Count = Field(0, description="Milliseconds of reading a checkpoint.")
    wait: _Count = Field(0, description="Milliseconds without capacity.")
    suspended: _Count = Field(0, description="Milliseconds suspended.")
    held: _Count = Field(0, description="Milliseconds waiting for a person.")
    unattributed: _Count = Field(0, description="Milliseconds that belong to none of the others.")


class CheckpointStatus(Section):
    """The newest checkpoint of the lineage."""

    attempt: _Count = Field(description="Attempt that wrote it.")
    step: _Count = Field(description="Steps done when it was written.")
    verified: bool | None = _reported("Whether its manifest verified; null when it has none.")
    time: Timestamp | None = _reported("When it was committed.")


class DecisionStatus(Section):
    """The last decision that changed something."""

    time: Timestamp | None = _reported("When it was made.")
    reason: _Reason = Field(description="Stable CamelCase reason.")
    message: _Message = Field("", description="The reason in a sentence.")


class RequestStatus(Section):
    """What became of a request."""

    id: Identifier = Field(description="The id of the request.")
    outcome: _Reason = Field(description="Stable CamelCase outcome.")
    message: _Message = Field("", description="The outcome in a sentence.")


class NodeStatus(Section):
    """One node of the run."""

    name: _Name = Field(description="Name of the node.")
    rack: _Name = Field(description="Its rack.")
    state: _Reason = Field(description="What it does or why it does not.")


class SupervisorStatus(Section):
    """The process that supervises the run on one machine."""

    pid: _Count | None = _reported("Its process id.")
    alive: bool | None = _reported("Whether it lives.")


class Status(Section):
    """Everything is optional: a run that nothing was reported about has an empty status."""

    phase: Phase | None = _reported("Where the run stands.")
    reason: _Reason | None = _reported("Stable CamelCase reason for the phase.")
    message: _Message | None = _reported("The reason in a sentence; for Held, what to do.")
    attempt: _Count | None = _reported("Number of the newest attempt.")
    step: _Count | None = _reported("Steps completed.")
    total_steps: _Count | None = _reported("Steps that the plan has, where the trainer said.")
    tokens: _Count | None = _reported("Tokens trained on.")
    loss: _Number | None = _reported("Loss of the last completed step.")
    eval_loss: _Number | None = _reported("Last held-out loss.")
    mfu: Annotated[float, Field(ge=0, le=10)] | None = _reported(
        "Share of the devices' peak while stepping; above 1 where a measured peak was too low."
    )
    peak_is_measured: bool | None = _reported(
        "True where mfu refers to a peak that the trainer measured on this machine, not to a published one."
    )
    tokens_per_second: Annotated[float, Field(ge=0, le=1e30)] | None = _reported("Recent pace.")
    goodput: _Share | None = _reported("Training time as a share of elapsed time.")
    layout: PlacedLayout | None = _reported("Layout in use.")
    conditions: Annotated[tuple[Condition, ...], Field(max_length=32)] = Field((), description="Aspects of the run.")
    ledger: Ledger | None = _reported("Where the time went.")
    last_checkpoint: CheckpointStatus | None = _reported("Newest checkpoint of the lineage.")
    last_decision: DecisionStatus | None = _reported("Last decision that changed something.")
    incidents: _Count | None = _reported("Losses of progress so far.")
    requests: Annotated[tuple[RequestStatus, ...], Field(max_length=256)] = Field(
        (), description="Outcome of each request."
    )
    nodes: Annotated[tuple[NodeStatus, ...], Field(max_length=2000)] = Field((), description="Nodes of the run.")
    observed_generation: _Count | None = _reported("The metadata.generation last acted upon.")
    started_at: Timestamp | None = _reported("When the run was first supervised.")
    updated_at: Timestamp | None = _reported("When this status was written.")
    supervisor: SupervisorStatus | None = _reported("The supervising process, on one machine.")
