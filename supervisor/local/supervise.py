"""`marin-sup run` on one machine: put the parts together, drive them to the end, leave nothing behind."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from logging.handlers import RotatingFileHandler
from types import FrameType

from supervisor.api.convert import core_requests, core_spec
from supervisor.api.digest import digest
from supervisor.api.dump import to_json
from supervisor.core.decide import first_memory
from supervisor.core.decision import Note
from supervisor.core.memory import Memory, Phase
from supervisor.core.node_states import node_states
from supervisor.core.observation import Ask
from supervisor.core.reasons import Reason
from supervisor.driver import Decided, Driver
from supervisor.local import chaos
from supervisor.local.clock import LocalClock
from supervisor.local.fleet import Fleet
from supervisor.local.history import read_history
from supervisor.local.host import LocalHost
from supervisor.local.kept_options import going_on
from supervisor.local.memory_store import MemoryStore
from supervisor.local.recorder import LocalRecorder
from supervisor.local.run_options import (
    RunOptions,
    fleet_of,
    keep_options,
    refuse_another_run,
    spec_of,
    surroundings_of,
)
from supervisor.local.rundir import RunDirectory, claim, write_atomically
from supervisor.local.screen import Screen, View
from supervisor.local.worker_processes import WorkerProcesses
from supervisor.wire.address import Address, NoAddress, read_address, write_address
from supervisor.wire.hub import Ring, SyncHub
from supervisor.wire.messages import Order
from supervisor.wire.server import SyncServer

STOP_SECONDS = 15.0  # how long workers may take to leave, beyond the grace that they give their ranks
log = logging.getLogger(__name__)


@dataclass(slots=True)
class Bell:
    """Rung by sync and by signals. Progress alone may wait a little, so that a fast trainer does not cause a pass a
    step.
    """

    _rung: threading.Event = field(default_factory=threading.Event)

    def ring(self, ring: Ring) -> None:
        if ring.urgent:
            self._rung.set()

    def wake(self) -> None:
        self._rung.set()

    def wait(self, timeout_ms: int) -> None:
        self._rung.wait(min(timeout_ms, LOOK_EVERY_MS) / 1000)
        self._rung.clear()


LOOK_EVERY_MS = 250  # requests from other terminals and progress are looked at this often


class AlreadySucceeded(Exception):
    """The run was over before, and nothing was started. `memory`: how it ended."""

    def __init__(self, memory: Memory) -> None:
        super().__init__("the run succeeded earlier; nothing was started")
        self.memory = memory


def supervise(options: RunOptions, screen: Screen, hold_screen: bool) -> Memory:
    """Run until it succeeded, was stopped, or is held (with `hold_screen` it stays while held, until interrupted).

    Raises `AlreadySucceeded`, and `RunDirectoryError`, `BadFleet`, `BadChaos` or `NewerMemory` for what cannot be
    started.
    """
    orders = [chaos.parse_chaos(text) for text in options.chaos]
    fleet = fleet_of(options)
    for order in orders:
        chaos.check_target(order, fleet, core_spec(options.manifest).layout.world_size)
    directory = options.directory
    directory.create()
    with claim(directory), _log_file(directory):
        refuse_another_run(options)
        memory = MemoryStore(directory.memory).load().memory
        options = going_on(options, memory)
        if memory is not None and memory.phase is Phase.SUCCEEDED:
            raise AlreadySucceeded(memory)
        for number, order in enumerate(orders):
            chaos.send(directory, order, f"scheduled-{number}-{order.verb}-{order.target}-{order.at_step}")
        keep_options(options, fleet)
        return _Supervision(options, fleet, screen, hold_screen).run()


class _Supervision:
    """Everything that lives as long as one supervising process."""

    def __init__(self, options: RunOptions, fleet: Fleet, screen: Screen, hold_screen: bool) -> None:
        directory = options.directory
        self._options, self._screen, self._hold_screen = options, screen, hold_screen
        self._spec = spec_of(options)
        self._store = MemoryStore(directory.memory)
        loaded = self._store.load()
        self._loss = loaded.loss
        self._clock = LocalClock(loaded.memory.ledger.at_ms if loaded.memory else 0)
        now = self._clock.now_ms()
        self._memory = loaded.memory or first_memory(now)
        history = read_history(directory.journal)
        self._recorder = LocalRecorder(directory, self._clock, history, self._write_status)
        self._bell = Bell()
        self._hub = SyncHub(self._bell.ring, self._recorder.listen)
        self._hub.resume(history.recorded)
        self._server = _listen(directory, self._hub)
        self._processes = WorkerProcesses(directory, dict(os.environ))
        self._host = LocalHost(
            directory,
            fleet,
            self._hub,
            self._processes,
            self._recorder,
            self._clock,
            surroundings_of(options),
            core_requests(options.manifest),
        )
        if loaded.memory is not None:
            self._host.returned_after(now - loaded.memory.ledger.at_ms)
        self._chaos = chaos.Chaos(directory, self._host, lambda: self._recorder.step)
        self._interrupts = 0
        self._shown_ms = 0
        self._unshown: list[Note] = []

    def run(self) -> Memory:
        self._ask_to_continue()
        driver = Driver(self._memory, self._host, self._store, self._host, self, self._clock, self._bell)
        self._server.start()
        self._recorder.start(self._hub)
        if self._loss:
            self._tell(Note(Reason.MEMORY_DAMAGED, self._loss))
        self._chaos.start()
        try:
            with self._signals():
                self._memory = driver.run(lambda: self._spec, self._finished)
                self._chaos.stop()
                self._leave()
        finally:
            self._save_last()
            self._server.stop()
            self._recorder.stop()
            self._screen.close()
        return self._memory

    def _save_last(self) -> None:
        try:
            self._store.save(self._memory)
        except OSError as error:  # all that an order rests on was saved before it was given
            log.error("the last memory cannot be saved; the one before it counts: %s", error)

    def decided(self, decided: Decided) -> None:
        """The driver's recorder: history, and the screen a few times a second."""
        self._recorder.decided(decided)
        self._unshown.extend(decided.decision.notes)
        memory, now = decided.decision.memory, decided.now_ms
        if decided.decision.notes or now - self._shown_ms >= SHOW_EVERY_MS or memory.phase is not decided.memory.phase:
            self._show(memory, now)

    def _show(self, memory: Memory, now: int) -> None:
        notes, self._unshown = tuple(self._unshown), []
        self._shown_ms = now
        incidents = self._recorder.incidents()
        host = self._host
        self._screen.show(View(memory, self._recorder.progress(), host.fleet, host.workers(), now, notes, incidents))

    def _tell(self, note: Note) -> None:
        self._recorder.note(note)
        self._unshown.append(note)

    def _ask_to_continue(self) -> None:
        """Running a run again is asking for it, unless a person has asked for something more exact meanwhile."""
        memory = self._memory
        answered = {outcome.id for outcome in memory.requests}
        waiting = [r for r in self._host.observe(memory).requests if r.id not in answered and r.ask is Ask.RESUME]
        if (memory.suspend_asked or memory.hold is not None) and not waiting:
            self._host.ask(Ask.RESUME, f"run-{self._clock.now_ms()}")

    def _finished(self, memory: Memory) -> bool:
        if self._interrupts > 1 or memory.phase is Phase.SUCCEEDED:
            return True
        if memory.phase is Phase.SUSPENDED:
            return True
        if memory.phase in (Phase.HELD, Phase.FAILED):
            return not self._hold_screen or self._interrupts > 0
        return False

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """The first interrupt saves and stops, the second kills."""

        def interrupted(number: int, frame: FrameType | None) -> None:
            self._interrupts += 1
            if self._interrupts == 1:
                self._host.ask(Ask.STOP, f"{signal.Signals(number).name.lower()}-{self._clock.now_ms()}")
            self._bell.wake()

        def hung_up(number: int, frame: FrameType | None) -> None:
            """End as a signal ends a process, at once and without a word to the workers, but for the log."""
            log.warning("the terminal is gone; the run trains on; marin-sup run or resume takes it up again")
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

        before = {number: signal.signal(number, interrupted) for number in (signal.SIGINT, signal.SIGTERM)}
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # not so under nohup
            before[signal.SIGHUP] = signal.signal(signal.SIGHUP, hung_up)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _leave(self) -> None:
        """No worker outlives a run that ended here; one that does not leave when told to is killed."""
        nodes = self._host.fleet.names()
        if self._interrupts < 2:
            for node in nodes:
                self._hub.set_order(node, Order(revision=0, key="leave", leave=True))
            nodes = self._wait_gone(nodes)
            for node in nodes:
                self._processes.terminate(node)
            nodes = self._wait_gone(nodes) if nodes else nodes
        for node in nodes:
            self._processes.kill(node)

    def _wait_gone(self, nodes: tuple[str, ...]) -> tuple[str, ...]:
        return self._processes.wait_gone(nodes, STOP_SECONDS, lambda: self._interrupts > 1)

    def _write_status(self, decided: Decided) -> None:
        """Called by the recorder's thread: the digest that other terminals read."""
        directory, memory = self._options.directory, decided.decision.memory
        states = node_states(decided.spec, memory, decided.observation, decided.now_ms)
        run = digest(self._options.manifest, memory, self._recorder.progress(), states, os.getpid(), decided.now_ms)
        write_atomically(directory.status, to_json(run).encode())


SHOW_EVERY_MS = 250
LOG_BYTES = 4 << 20  # of supervisor.log, and again of the one before it


def _listen(directory: RunDirectory, hub: SyncHub) -> SyncServer:
    """Where the supervisor before this one listened, so that its workers find us at once; else anywhere."""
    try:
        known = read_address(directory.sync)
    except NoAddress:
        known = Address("127.0.0.1", 0, secrets.token_urlsafe(32))
    try:
        server = SyncServer(hub, known.token, known.host, known.port)
    except OSError:
        server = SyncServer(hub, known.token, known.host, 0)
    host, port = server.address
    write_address(directory.sync, Address(host, port, known.token))
    return server


class _LogFile(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk: the log lacks these lines, and the terminal is no place for them either."""
        if not isinstance(sys.exception(), OSError):
            super().handleError(record)

    def close(self) -> None:
        with suppress(OSError):  # the lines that the disk did not take
            super().close()


@contextmanager
def _log_file(directory: RunDirectory) -> Iterator[None]:
    """Our own log goes to the run's directory; the terminal belongs to the screen."""
    handler = _LogFile(directory.log, maxBytes=LOG_BYTES, backupCount=1)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("supervisor")
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    root.propagate = False
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
