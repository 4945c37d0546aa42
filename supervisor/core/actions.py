"""What the core asks of a host: idempotent requests, issued again until they are observed done."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from supervisor.core.observation import Checkpoint
from supervisor.core.placement import PlacedRank
from supervisor.core.spec import Layout


class Command(Enum):
    RUN = "run"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class GangIntent:
    """One node's share of an attempt. `save` and `stop` reach the trainer as control requests.

    `skips`: (step, count) of each place where the run passes over batches of its data.
    """

    attempt: int
    command: Command
    ranks: tuple[PlacedRank, ...]
    layout: Layout
    coordinator: str
    resume: Checkpoint | None
    save: int
    stop: bool
    grace_ms: int
    skips: tuple[tuple[int, int], ...] = ()


class TaskKind(Enum):
    SURVEY = "survey"
    CHECK = "check"
    SET_ASIDE = "set-aside"
    COLLECT = "collect"
    EVIDENCE = "evidence"
    PREPARE = "prepare"


@dataclass(frozen=True, slots=True)
class Task:
    """Work on the shared checkpoint tree, a question to the trainer, or a look at ranks; done once per id.

    `attempt`: whose ranks are to be looked at.
    """

    id: str
    kind: TaskKind
    layouts: tuple[Layout, ...] = ()
    checkpoint: Checkpoint | None = None
    keep: tuple[Checkpoint, ...] = ()
    current: int = 0
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class WorkerOrder:
    """All that a worker is to do. `key` names the content; a worker that acts on this key needs no new order."""

    key: str
    gang: GangIntent | None = None
    tasks: tuple[Task, ...] = ()


@dataclass(frozen=True, slots=True)
class StartWorker:
    node: str


@dataclass(frozen=True, slots=True)
class FenceWorker:
    """End this very worker, never the one that replaced it."""

    node: str
    session: str


@dataclass(frozen=True, slots=True)
class SendOrder:
    node: str
    order: WorkerOrder


Action = StartWorker | FenceWorker | SendOrder
