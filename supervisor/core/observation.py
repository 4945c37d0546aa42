"""What a host saw in one pass. Hosts translate into this and judge nothing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from supervisor.core.spec import Layout


@dataclass(frozen=True, slots=True)
class Checkpoint:
    attempt: int
    step: int

    def __str__(self) -> str:
        return f"a{self.attempt}:{self.step}"


@dataclass(frozen=True, slots=True)
class Node:
    """A compute tray as the fleet lists it. `present` is the fleet's word, never a verdict about its worker."""

    name: str
    rack: str
    present: bool = True


@dataclass(frozen=True, slots=True)
class Exit:
    """How a rank ended: a code or a signal. `by_us`: after our own TERM or KILL. `last_words` is bounded output."""

    code: int | None
    signal: int | None
    by_us: bool
    at_ms: int
    last_words: str = ""


class RankState(Enum):
    STARTING = "starting"
    RUNNING = "running"
    EXITED = "exited"


@dataclass(frozen=True, slots=True)
class Rank:
    """`entered` and `completed` are the highest step numbers seen, 0 for none.

    `own_ms`: its own work in a step of late, without waiting for its peers, 0 where it does not say. `moved`: bytes
    of the restore or save under way.
    """

    rank: int
    state: RankState
    phase: str = ""
    entered: int = 0
    completed: int = 0
    exit: Exit | None = None
    own_ms: int = 0
    moved: int = 0


@dataclass(frozen=True, slots=True)
class Gang:
    """This worker's share of one attempt. `refused`: why it runs none of it, if so."""

    attempt: int
    ranks: tuple[Rank, ...] = ()
    refused: str = ""

    @property
    def ended(self) -> bool:
        return all(rank.state is RankState.EXITED for rank in self.ranks)


class StepState(Enum):
    VERIFIED = "verified"
    DAMAGED = "damaged"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class SurveyedStep:
    attempt: int
    step: int
    state: StepState
    parent: Checkpoint | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Survey:
    """The checkpoint tree as a worker found it. `newest_attempt` counts empty attempt directories, too."""

    id: str
    steps: tuple[SurveyedStep, ...] = ()
    newest_attempt: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class LayoutAnswer:
    layout: Layout
    fits: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LayoutCheck:
    """The trainer's own word on each layout. `answers` is empty where it does not know the question.

    `error`: what the trainer, or the worker, said where there was no whole answer; `exit_code`: how the trainer ended.
    """

    id: str
    answers: tuple[LayoutAnswer, ...] = ()
    error: str = ""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class TaskDone:
    """Any other task's end."""

    id: str
    ok: bool
    error: str = ""


@dataclass(frozen=True, slots=True)
class RankEvidence:
    """What a living process shows from outside.

    `state`: the kernel's letter (R, S, D, T, Z). `cpu`: cores it used while it was watched, None where that was not
    to be had. `stack`: the frames of its main thread, innermost first. `error`: what could not be seen, and why.
    """

    rank: int
    state: str = ""
    cpu: float | None = None
    stack: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One worker's answer about its ranks of an attempt that stands still."""

    id: str
    ranks: tuple[RankEvidence, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Programs made ready for other layouts. `error`: why there is no answer, as for a trainer that knows of none."""

    id: str
    layouts: tuple[LayoutAnswer, ...] = ()
    error: str = ""


TaskResult = Survey | LayoutCheck | TaskDone | Evidence | Prepared


@dataclass(frozen=True, slots=True)
class Worker:
    """Our agent on a node, judged by sync alone. `order_key` names the newest order that it acts on."""

    node: str
    session: str
    connected: bool
    order_key: str = ""
    newest_attempt: int = 0
    offer: str = ""
    gangs: tuple[Gang, ...] = ()
    results: tuple[TaskResult, ...] = ()

    def gang(self, attempt: int) -> Gang | None:
        for gang in self.gangs:
            if gang.attempt == attempt:
                return gang
        return None


@dataclass(frozen=True, slots=True)
class Alarm:
    """What a rank said that its exit code cannot. `checkpoint` is the one it means, if any."""

    attempt: int
    rank: int
    kind: str
    message: str = ""
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True, slots=True)
class FailedSave:
    """A save that failed while training went on."""

    attempt: int
    step: int
    message: str = ""


class Ask(Enum):
    CHECKPOINT_NOW = "checkpointNow"
    STOP = "stop"
    RESUME = "resume"
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asks of a run, carried out once per id.

    `from_step`: of a resume or rollback. `skip_batches`: how many batches after it are passed over.
    """

    id: str
    ask: Ask
    from_step: int | None = None
    skip_batches: int = 0


@dataclass(frozen=True, slots=True)
class Observation:
    """One snapshot.

    `total_steps` is the trainer's own word (None: not said yet); `contract_spoken`: it sent a hello in the current
    attempt, so it may be expected to heed requests. `away_ms`: how long nobody watched before this pass (a restart).
    """

    nodes: tuple[Node, ...] = ()
    workers: tuple[Worker, ...] = ()
    commits: tuple[Checkpoint, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    failed_saves: tuple[FailedSave, ...] = ()
    requests: tuple[Request, ...] = ()
    total_steps: int | None = None
    contract_spoken: bool = False
    away_ms: int = 0

    def by_node(self) -> dict[str, Worker]:
        """For a phase that looks at many nodes: one look-up each, instead of a walk."""
        return {worker.node: worker for worker in reversed(self.workers)}

    def worker(self, node: str) -> Worker | None:
        return next((worker for worker in self.workers if worker.node == node), None)

    def node(self, name: str) -> Node | None:
        return next((node for node in self.nodes if node.name == name), None)
