"""What is known of a run, as a `TrainingRun` with its status: for people and `kubectl wait`, never decided upon."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Protocol

from supervisor.api import status
from supervisor.api.conditions import conditions
from supervisor.api.types import TrainingRun
from supervisor.core.ledger import Times
from supervisor.core.memory import Memory, RequestOutcome
from supervisor.core.observation import Checkpoint

MAX_MESSAGE = 4096
MAX_NODES = 2000
MAX_REQUESTS = 256


class Told(Protocol):
    """What the trainer said of itself (`supervisor.observe.progress.Progress`); None where it said nothing."""

    @property
    def total_steps(self) -> int | None: ...
    @property
    def tokens_per_step(self) -> int | None: ...
    @property
    def loss(self) -> float | None: ...
    @property
    def eval_loss(self) -> float | None: ...
    @property
    def mfu(self) -> float | None: ...
    @property
    def peak_is_measured(self) -> bool: ...
    @property
    def tokens_per_second(self) -> float | None: ...
    @property
    def commit_times(self) -> Mapping[Checkpoint, int]: ...


def digest(
    manifest: TrainingRun, memory: Memory, told: Told, nodes: Iterable[tuple[str, str, str]], pid: int, now_ms: int
) -> TrainingRun:
    """`manifest` with its status filled in.

    `nodes`: (name, rack, state) as `core.node_states` gives them. `pid`: the supervising process. A number that the
    resource does not allow (a loss that is not finite, say) is left out: a status is always one that can be read.
    """
    step = current_step(memory)
    placement = memory.attempt.placement if memory.attempt else memory.placement
    layout = placement.layout if placement else None
    total = memory.total_steps or told.total_steps
    reported = status.Status(
        phase=memory.phase.value,
        reason=memory.reason.value,
        message=message_of(memory)[:MAX_MESSAGE],
        attempt=memory.attempt.number if memory.attempt else memory.newest_attempt,
        step=step,
        total_steps=_count(total),
        tokens=_count(step * told.tokens_per_step) if told.tokens_per_step is not None else None,
        loss=_within(told.loss, -1e30, 1e30),
        eval_loss=_within(told.eval_loss, -1e30, 1e30),
        mfu=_within(told.mfu, 0, 10) if memory.attempt else None,
        peak_is_measured=told.peak_is_measured if memory.attempt and told.mfu is not None else None,
        tokens_per_second=_within(told.tokens_per_second, 0, 1e30) if memory.attempt else None,
        goodput=_within(memory.ledger.goodput(), 0, 1),
        layout=status.PlacedLayout(
            racks=layout.racks, nodes_per_rack=layout.nodes_per_rack, ranks_per_node=layout.ranks_per_node
        )
        if layout
        else None,
        conditions=conditions(manifest.spec, memory, told.commit_times, step, now_ms),
        ledger=_ledger(memory.ledger.run),
        last_checkpoint=_last_checkpoint(memory, told),
        last_decision=status.DecisionStatus(reason=memory.reason.value, message=memory.message[:MAX_MESSAGE]),
        incidents=memory.incidents,
        requests=tuple(_request(outcome) for outcome in memory.requests[-MAX_REQUESTS:]),
        nodes=tuple(_node(*node) for node in list(nodes)[:MAX_NODES]),
        started_at=moment(memory.ledger.started_ms),
        updated_at=moment(now_ms),
        supervisor=status.SupervisorStatus(pid=pid, alive=True),
    )
    return manifest.model_copy(update={"status": reported})


def message_of(memory: Memory) -> str:
    """The reason in a sentence; of a held run also what a person can do."""
    if memory.hold is None:
        return memory.message
    return f"{memory.hold.message}; {memory.hold.way_out}"


def current_step(memory: Memory) -> int:
    """Steps done on today's lineage: those of the attempt that runs, or what it was resumed from."""
    attempt = memory.attempt
    if attempt is None:
        return memory.high_step
    return max(attempt.completed, attempt.parent.step if attempt.parent else 0)


def moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _last_checkpoint(memory: Memory, told: Told) -> status.CheckpointStatus | None:
    """The core keeps them in the order of the lineage, the newest last."""
    if not memory.checkpoints:
        return None
    newest = memory.checkpoints[-1]
    at = told.commit_times.get(newest.checkpoint)
    return status.CheckpointStatus(
        attempt=newest.checkpoint.attempt,
        step=newest.checkpoint.step,
        verified=newest.verified or None,  # a survey has not looked yet, or there is no manifest: not known
        time=moment(at) if at is not None else None,
    )


def _ledger(times: Times) -> status.Ledger:
    return status.Ledger(**asdict(times))


def _node(name: str, rack: str, state: str) -> status.NodeStatus:
    return status.NodeStatus(name=name, rack=rack, state=_camel(state))


def _request(outcome: RequestOutcome) -> status.RequestStatus:
    return status.RequestStatus(
        id=outcome.id, outcome=_camel(outcome.state.value), message=outcome.message[:MAX_MESSAGE]
    )


def _camel(words: str) -> str:
    """`set-aside` as `SetAside`: states and outcomes are CamelCase in the resource."""
    return "".join(word.capitalize() for word in words.split("-"))


def _count(value: int | None) -> int | None:
    return value if value is not None and 0 <= value <= 10**18 else None


def _within(value: float | None, low: float, high: float) -> float | None:
    """`value` if it is a number in bounds; NaN is in none."""
    return value if value is not None and low <= value <= high else None
