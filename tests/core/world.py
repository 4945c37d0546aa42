"""A simulated world in pure Python: nodes, workers, ranks and a checkpoint tree, with faults to order.

Each `tick` moves the world on, shows it to `decide` and carries out what that asks for, as a host would. An order is
acted on one tick after it was sent; a rank takes three ticks to start; then a tick is a step.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count

from supervisor.core.actions import Action, FenceWorker, SendOrder, StartWorker
from supervisor.core.decide import decide, first_memory
from supervisor.core.decision import Decision, Note
from supervisor.core.incident import Incident
from supervisor.core.memory import Memory, Phase, Stage
from supervisor.core.observation import (
    Alarm,
    Ask,
    Checkpoint,
    Exit,
    FailedSave,
    LayoutCheck,
    Node,
    Observation,
    RankEvidence,
    Request,
    Worker,
)
from supervisor.core.reasons import Reason
from supervisor.core.spec import Layout, Spec
from tests.builders import START_MS, fleet, spec
from tests.core.gang import SimAttempt
from tests.core.node import SimWorker, unreachable
from tests.core.tree import Tree

TICK_MS = 1_000


@dataclass(frozen=True)
class Seen:
    """One pass, as the decision log has it."""

    spec: Spec
    memory: Memory
    obs: Observation
    now: int
    decision: Decision


@dataclass
class World:
    spec: Spec = field(default_factory=spec)
    nodes: dict[str, Node] = field(default_factory=lambda: {node.name: node for node in fleet()})
    total: int = 40
    every: int = 5  # a checkpoint each so many steps
    now: int = START_MS
    tells_total: bool = True
    followers_at_end: bool = False
    broken: int | None = None  # the code with which every attempt exits at once
    non_finite_at: int | None = None
    bad_data_at: int | None = None
    exits_zero_at: int | None = None
    hangs_at_start: bool = False
    stop_code: int = 75
    says_hello: bool = True
    heeds_stop: bool = True
    never_leaves: int | None = None  # a rank that hangs at its exit
    fence_needs_sync: bool = False  # a worker that is cut off cannot be ended, either
    checks: dict[Layout, str] | None = field(default_factory=dict)  # refused layouts, with why
    check_fails: LayoutCheck | None = None  # what comes of every check instead
    tick_ms: int = TICK_MS  # how long the ranks take for a step
    saves_fail: bool = False
    failed_saves: list[FailedSave] = field(default_factory=list)
    stuck_inside: bool = False  # a rank that is stuck has entered its step
    own_ms: dict[str, int] = field(default_factory=dict)  # own work in a step by node; empty: no rank says
    tree: Tree = field(default_factory=Tree)
    workers: dict[str, SimWorker] = field(default_factory=dict)
    alarms: list[Alarm] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    memory: Memory = field(default_factory=lambda: first_memory(START_MS))
    log: list[Seen] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    incidents: dict[int, Incident] = field(default_factory=dict)
    commits: list[Checkpoint] = field(default_factory=list)
    fenced: list[tuple[str, str]] = field(default_factory=list)
    _shown: dict[str, Worker] = field(default_factory=dict)
    _away_ms: int = 0
    _names: count[int] = field(default_factory=lambda: count(1))

    # what happens

    def tick(self, ms: int | None = None) -> Decision:
        self.move(ms or self.tick_ms)
        return self.decide()

    def move(self, ms: int = TICK_MS) -> None:
        """The world goes on, whether anybody watches or not."""
        self.now += ms
        for worker in self.workers.values():
            worker.adopt(self.now)
            worker.work(self.tree, self.checks, self.check_fails)
        for attempt in {gang.intent.attempt for worker in self.workers.values() for gang in worker.live_gangs()}:
            SimAttempt(self, attempt).advance()

    def decide(self) -> Decision:
        obs = self.observe()
        decision = decide(self.spec, self.memory, obs, self.now)
        self.log.append(Seen(self.spec, self.memory, obs, self.now, decision))
        self.memory = decision.memory
        self.notes += decision.notes
        self.incidents |= {incident.number: incident for incident in decision.incidents}
        for action in decision.actions:
            self.act(action)
        return decision

    def observe(self) -> Observation:
        away, self._away_ms = self._away_ms, 0
        for worker in self.workers.values():
            if worker.reach:
                self._shown[worker.node] = worker.seen()
                self.commits += worker.unsaid_commits
                worker.unsaid_commits = []
        attempt = self.memory.attempt
        spoken = (
            attempt is not None
            and self.says_hello
            and any(
                rank.phase == "train"
                for w in self._shown.values()
                if (gang := w.gang(attempt.number))
                for rank in gang.ranks
            )
        )
        return Observation(
            nodes=tuple(self.nodes.values()),
            workers=tuple(self._show(node) for node in self.nodes if node in self._shown),
            commits=tuple(self.commits),
            alarms=tuple(self.alarms),
            failed_saves=tuple(self.failed_saves),
            requests=tuple(self.requests),
            total_steps=self.total if self.tells_total and self.tree.attempts else None,
            contract_spoken=spoken,
            away_ms=away,
        )

    def _show(self, node: str) -> Worker:
        worker = self.workers.get(node)
        last = self._shown[node]
        return last if worker and worker.reach and worker.session == last.session else unreachable(last)

    def act(self, action: Action) -> None:
        match action:
            case StartWorker(node):
                if node not in self.workers and self.nodes[node].present:
                    self.workers[node] = SimWorker(node, f"{node}-s{next(self._names)}")
            case FenceWorker(node, session):
                if self.fence_needs_sync and node in self.workers and not self.workers[node].reach:
                    return
                self.fenced.append((node, session))
                if node in self.workers and self.workers[node].session == session:
                    del self.workers[node]
                if node in self._shown and self._shown[node].session == session:
                    del self._shown[node]
            case SendOrder(node, order):
                if node in self.workers:
                    self.workers[node].mail = order

    # faults and other events

    def kill_rank(self, rank: int, signal: int = 9) -> None:
        self._end_rank(rank, Exit(None, signal, False, self.now))

    def exit_rank(self, rank: int, code: int, says: str = "") -> None:
        self._end_rank(rank, Exit(code, None, False, self.now, says))

    def _end_rank(self, number: int, how: Exit) -> None:
        for worker in self.workers.values():
            for gang in worker.live_gangs():
                for rank in gang.ranks:
                    if rank.number == number and rank.alive:
                        rank.exit = how

    def hang(self, number: int, state: str = "T", cpu: float = 0.0) -> None:
        """The rank goes nowhere from now on; until it is killed, it shows this."""
        for worker in self.workers.values():
            for gang in worker.live_gangs():
                for rank in gang.ranks:
                    if rank.number == number:
                        rank.stuck = RankEvidence(number, state, cpu, ("spin.py:3 turn",))

    def kill_worker(self, node: str) -> None:
        """The agent alone, with the ranks below it; the node is there and gets a new one."""
        self.workers.pop(node, None)

    def kill_node(self, node: str) -> None:
        self.nodes[node] = replace(self.nodes[node], present=False)
        self.workers.pop(node, None)

    def kill_rack(self, rack: str) -> None:
        for node in [n for n in self.nodes.values() if n.rack == rack]:
            self.kill_node(node.name)

    def revive(self, rack_or_node: str) -> None:
        for node in list(self.nodes.values()):
            if rack_or_node in (node.name, node.rack):
                self.nodes[node.name] = replace(node, present=True)

    def cut_off(self, node: str) -> None:
        """Sync is gone; the worker and its ranks go on."""
        if node in self.workers:
            self.workers[node].reach = False

    def reconnect(self, node: str) -> None:
        if node in self.workers:
            self.workers[node].reach = True

    def make_stubborn(self, node: str) -> None:
        if node in self.workers:
            self.workers[node].stubborn = True

    def make_docile(self, node: str) -> None:
        if node in self.workers:
            self.workers[node].stubborn = False

    def damage_newest(self) -> None:
        if newest := self.tree.newest():
            self.tree.damage(newest)

    def damage_all(self) -> None:
        for checkpoint in self.tree.steps:
            self.tree.damage(checkpoint)

    def bring_back(self, checkpoint: Checkpoint) -> None:
        self.tree.commit(checkpoint.attempt, checkpoint.step, None)

    def wipe_tree(self) -> None:
        self.tree.steps.clear()

    def mend_tree(self) -> None:
        self.tree.unreadable = ""

    def rot_newest(self) -> None:
        if newest := self.tree.newest():
            self.tree.rotten.add(newest)

    def late_commit(self, attempt: int, step: int) -> None:
        """A rank of an older attempt finishes its save."""
        parent = next((a.parent for a in self.memory.lineage if a.attempt == attempt), None)
        self.commits.append(self.tree.commit(attempt, step, parent))

    def supervisor_away(self, ticks: int, reconnecting: int = 0) -> None:
        """The run goes on alone; then a new supervisor to which workers reconnect only after so many of its passes."""
        for _ in range(ticks):
            self.move()
        self._away_ms = ticks * TICK_MS
        if reconnecting:
            self._shown.clear()
            reaching = [worker for worker in self.workers.values() if worker.reach]
            for worker in reaching:
                worker.reach = False
            for _ in range(reconnecting):
                self.tick()
            for worker in reaching:
                worker.reach = True

    def lose_memory(self) -> None:
        self.memory = first_memory(self.now)

    def request(self, ask: Ask, from_step: int | None = None, skip_batches: int = 0) -> None:
        self.requests.append(Request(f"q{len(self.requests)}", ask, from_step, skip_batches))

    def change(self, **spec_changes: object) -> None:
        self.spec = replace(self.spec, **spec_changes)  # type: ignore[arg-type]

    def set(self, **changes: object) -> None:
        for name, value in changes.items():
            setattr(self, name, value)

    # what a test looks at

    @property
    def phase(self) -> Phase:
        return self.memory.phase

    @property
    def stage(self) -> Stage | None:
        return self.memory.attempt.stage if self.memory.attempt else None

    @property
    def step(self) -> int:
        return self.memory.attempt.completed if self.memory.attempt else 0

    def kept(self) -> tuple[Checkpoint, ...]:
        return tuple(candidate.checkpoint for candidate in self.memory.checkpoints)

    def said(self, reason: Reason) -> bool:
        return any(note.reason is reason for note in self.notes)

    def noted(self, words: str) -> bool:
        return any(words in note.message for note in self.notes)

    def story(self) -> str:
        """What happened, for the message of a failed test."""
        lines = [f"  {note.reason.value}: {note.message}" for note in self.notes]
        return "\n".join([f"{self.phase.value}, {self.memory.reason.value}: {self.memory.message}", *lines])
