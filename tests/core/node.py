"""One node of the simulated world: a worker process and the ranks below it, which die with it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from supervisor.core.actions import Command, GangIntent, Task, TaskKind, WorkerOrder
from supervisor.core.observation import (
    Checkpoint,
    Evidence,
    Exit,
    Gang,
    LayoutAnswer,
    LayoutCheck,
    Prepared,
    Rank,
    RankEvidence,
    RankState,
    TaskDone,
    TaskResult,
    Worker,
)
from supervisor.core.spec import Layout
from tests.core.tree import Tree


@dataclass
class SimRank:
    number: int
    phase: str = "import"
    completed: int = 0
    exit: Exit | None = None
    entered: int = 0
    stuck: RankEvidence | None = None  # it goes nowhere, and this is what it shows
    own_ms: int = 0

    @property
    def alive(self) -> bool:
        return self.exit is None

    def seen(self) -> Rank:
        if self.exit is not None:
            return Rank(self.number, RankState.EXITED, self.phase, self.completed, self.completed, self.exit)
        state = RankState.RUNNING if self.phase == "train" else RankState.STARTING
        entered = max(self.entered, self.completed)
        return Rank(self.number, state, self.phase, entered, self.completed, own_ms=self.own_ms)

    def looked_at(self) -> RankEvidence:
        """A rank that waits for another spins in its collective."""
        seen = self.stuck or RankEvidence(self.number, "R", 1.0, ("wait.py:1 collective",))
        return replace(seen, rank=self.number)


@dataclass
class SimGang:
    intent: GangIntent
    ranks: list[SimRank]
    saves_done: int = 0

    @property
    def alive(self) -> bool:
        return any(rank.alive for rank in self.ranks)


@dataclass
class SimWorker:
    """`order` is what it acts on; `mail` arrived and is acted on one pass later. `reach`: whether sync works."""

    node: str
    session: str
    newest_attempt: int = 0
    reach: bool = True
    order: WorkerOrder = field(default_factory=lambda: WorkerOrder(""))
    mail: WorkerOrder | None = None
    gangs: list[SimGang] = field(default_factory=list)
    results: dict[str, TaskResult] = field(default_factory=dict)
    unsaid_commits: list[Checkpoint] = field(default_factory=list)
    stubborn: bool = False  # its ranks do not end when told to

    def seen(self) -> Worker:
        gangs = tuple(Gang(gang.intent.attempt, tuple(rank.seen() for rank in gang.ranks)) for gang in self.gangs)
        offer = f"{self.node}:{5000 + self.newest_attempt}"
        results = tuple(self.results.values())
        return Worker(self.node, self.session, True, self.order.key, self.newest_attempt, offer, gangs, results)

    def live_gangs(self) -> list[SimGang]:
        return [gang for gang in self.gangs if gang.alive]

    def adopt(self, now: int) -> None:
        """Act on the newest order: end what is not in it, start what is new in it."""
        if self.mail is not None and self.reach:
            self.order, self.mail = self.mail, None
        wanted = self.order.gang
        for gang in self.gangs:
            running = wanted and wanted.attempt == gang.intent.attempt and wanted.command is Command.RUN
            if running and wanted:
                gang.intent = wanted
            else:
                self._stop(gang, now)
        self.gangs = [g for g in self.gangs if g.alive or (wanted and wanted.attempt == g.intent.attempt)]
        if wanted and wanted.command is Command.RUN and not self.gangs and wanted.attempt > self.newest_attempt:
            self.newest_attempt = wanted.attempt
            self.gangs = [SimGang(wanted, [SimRank(rank.rank) for rank in wanted.ranks])]

    def _stop(self, gang: SimGang, now: int) -> None:
        for rank in gang.ranks:
            if rank.alive and not self.stubborn:
                rank.exit = Exit(None, 15, True, now)

    def work(self, tree: Tree, refuses: dict[Layout, str] | None, check_fails: LayoutCheck | None = None) -> None:
        """Do the tasks of the order, once each. `refuses` None: the trainer does not know the question."""
        for task in self.order.tasks:
            if task.id in self.results:
                continue
            if task.kind is TaskKind.CHECK and check_fails is not None:
                self.results[task.id] = replace(check_fails, id=task.id)
            elif task.kind is TaskKind.EVIDENCE:
                ranks = tuple(r.looked_at() for g in self.gangs for r in g.ranks if r.alive)
                self.results[task.id] = Evidence(task.id, ranks)
            elif task.kind is TaskKind.PREPARE:
                self.results[task.id] = Prepared(task.id, tuple(LayoutAnswer(x, True) for x in task.layouts))
            else:
                self.results[task.id] = _done(task, tree, refuses)


def _done(task: Task, tree: Tree, refuses: dict[Layout, str] | None) -> TaskResult:
    match task.kind:
        case TaskKind.SURVEY:
            return tree.survey(task.id)
        case TaskKind.CHECK:
            if refuses is None:
                return LayoutCheck(task.id)
            asked = task.layouts
            return LayoutCheck(task.id, tuple(LayoutAnswer(x, x not in refuses, refuses.get(x, "")) for x in asked))
        case TaskKind.SET_ASIDE:
            if task.checkpoint is not None:
                tree.move_away(task.checkpoint)
        case TaskKind.COLLECT:
            tree.collect(task)
    return TaskDone(task.id, True)


def unreachable(worker: Worker) -> Worker:
    """What the supervisor still knows of a worker whose connections are gone."""
    return replace(worker, connected=False)
