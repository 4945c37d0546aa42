"""The local host's ports: observing the laptop's fleet, and carrying out what the core asks of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from supervisor.api.convert import core_request
from supervisor.api.requests import Request as ApiRequest
from supervisor.core.actions import Action, FenceWorker, SendOrder, StartWorker, WorkerOrder
from supervisor.core.memory import Memory
from supervisor.core.observation import Ask, Observation, Request, Worker
from supervisor.local.clock import LocalClock
from supervisor.local.fleet import Fleet, save_fleet
from supervisor.local.recorder import LocalRecorder
from supervisor.local.rundir import RunDirectory
from supervisor.local.translate import Surroundings, order_for, worker_seen
from supervisor.local.worker_processes import WorkerProcesses
from supervisor.wire.hub import SyncHub
from supervisor.wire.json_file import read_json
from supervisor.wire.text import printable

MAX_REQUEST_BYTES = 64 << 10
SHOWN = 500  # characters of an error about a file that anybody may have written
log = logging.getLogger(__name__)


class LocalHost:
    """Observer and executor in one, since both look at the same fleet. Safe to call from several threads."""

    def __init__(
        self,
        directory: RunDirectory,
        fleet: Fleet,
        hub: SyncHub,
        processes: WorkerProcesses,
        recorder: LocalRecorder,
        clock: LocalClock,
        around: Surroundings,
        declared: tuple[Request, ...] = (),
    ) -> None:
        self._directory = directory
        self._fleet = fleet
        self._hub = hub
        self._processes = processes
        self._recorder = recorder
        self._clock = clock
        self._around = around
        self._declared = declared
        self._asked: list[Request] = []
        self._orders: dict[str, WorkerOrder] = {}
        self._fails: dict[int, dict[int, int]] = {}  # attempt -> rank -> how often it was asked to fail
        self._ended: set[tuple[str, str]] = set()  # (node, session) of workers that we know to be dead
        self._away_ms = 0
        self._unreadable: set[str] = set()
        self._lock = threading.RLock()

    @property
    def fleet(self) -> Fleet:
        return self._fleet

    # ---- observing

    def returned_after(self, away_ms: int) -> None:
        """Nobody watched this run for so long before the first pass."""
        self._away_ms += away_ms

    def ask(self, ask: Ask, name: str) -> None:
        """A request of the supervising process itself (an interrupt, a run that is started again)."""
        with self._lock:
            self._asked.append(Request(name, ask))

    def observe(self, memory: Memory) -> Observation:
        with self._lock:
            away, self._away_ms = self._away_ms + self._clock.take_jump(), 0
            progress = self._recorder.snapshot()
            return Observation(
                nodes=self._fleet.nodes(),
                workers=(*self.workers(), *self._unheard(memory)),
                commits=progress.commits,
                alarms=progress.alarms,
                failed_saves=progress.failed_saves,
                requests=(*self._declared, *self._asked, *self._requests()),
                total_steps=progress.total_steps,
                contract_spoken=memory.attempt is not None and progress.greeted == memory.attempt.number,
                away_ms=away,
            )

    def workers(self) -> tuple[Worker, ...]:
        now = self._clock.now_ms()
        seen = []
        for node in self._fleet.names():
            session = self._hub.session(node)
            if session and (node, session) not in self._ended:
                seen.append(worker_seen(node, session, self._hub.connected(node), self._hub.report(node), now))
        return tuple(seen)

    def _unheard(self, memory: Memory) -> Iterator[Worker]:
        """Workers of the attempt of which this supervisor has heard nothing, and which live: they may hang while their
        ranks train on, and are to be killed before others take their place.
        """
        placed = memory.attempt.sessions if memory.attempt else ()
        for node, session in dict.fromkeys((*placed, *memory.fencing)):
            if self._hub.session(node) or (node, session) in self._ended:
                continue
            if self._processes.find(node) is not None:
                yield Worker(node, session, connected=False)

    def rank_pid(self, rank: int) -> int | None:
        """The process of that rank of the newest attempt, while it lives."""
        newest: tuple[int, int | None] = (0, None)
        for node in self._fleet.names():
            report = self._hub.report(node)
            for gang in report.gangs if report else ():
                for reported in gang.ranks:
                    if reported.rank == rank and reported.exit is None and gang.number > newest[0]:
                        newest = (gang.number, reported.pid)
        return newest[1]

    def _requests(self) -> tuple[Request, ...]:
        found = (self._read_request(path) for path in sorted(self._directory.requests.glob("*.json")))
        return tuple(request for request in found if request is not None)

    def _read_request(self, path: Path) -> Request | None:
        try:
            return core_request(ApiRequest.model_validate(read_json(path, MAX_REQUEST_BYTES)))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, ValidationError) as error:
            if path.name not in self._unreadable:
                log.warning("request %s cannot be read and is passed over: %s", path, printable(str(error), SHOWN))
                self._unreadable.add(path.name)
            return None

    # ---- acting

    def act(self, action: Action) -> None:
        with self._lock:
            match action:
                case StartWorker(node):
                    self._start(node)
                case FenceWorker(node, session):
                    self._fence(node, session)
                case SendOrder(node, order):
                    self._orders[node] = order
                    self._send(node)

    def _start(self, node: str) -> None:
        try:
            self._processes.start(node)
        except OSError as error:  # no process or no disk to be had just now: the next pass asks again
            log.error("the worker of %s cannot be started: %s", node, error)

    def _fence(self, node: str, session: str) -> None:
        """Kill that worker once, and never the one that replaced it; see `_unheard` for one without a session."""
        if (node, session) not in self._ended and self._hub.session(node) in ("", session):
            self._processes.kill(node)
        self._ended.add((node, session))

    def _send(self, node: str) -> None:
        order = self._orders.get(node)
        if order is not None:
            fails = self._fails.get(order.gang.attempt, {}) if order.gang else {}
            self._hub.set_order(node, order_for(order, self._around, fails))

    # ---- fault injection

    def kill_nodes(self, nodes: tuple[str, ...]) -> None:
        """Those nodes lose power: they are gone, with all that ran there, until they are revived."""
        with self._lock:
            self._change_fleet(self._fleet.without(nodes))
            for node in nodes:
                self._processes.kill(node)

    def revive_nodes(self, nodes: tuple[str, ...]) -> None:
        with self._lock:
            self._change_fleet(self._fleet.revived(nodes))

    def _change_fleet(self, fleet: Fleet) -> None:
        self._fleet = fleet
        try:
            save_fleet(self._directory.fleet, fleet)
        except OSError as error:  # a full disk: it holds for as long as this supervisor lives
            log.error("the fleet cannot be saved; the next supervisor will not know which nodes are dead: %s", error)

    def fail_rank(self, rank: int) -> None:
        """Ask the trainer of that rank to raise an exception."""
        with self._lock:
            newest = max((order.gang.attempt for order in self._orders.values() if order.gang), default=0)
            fails = self._fails.setdefault(newest, {})
            fails[rank] = fails.get(rank, 0) + 1
            for node in self._orders:
                self._send(node)
