"""One rank: started once, drained, told to stop, its end kept until it was reported. For the main thread alone."""

from __future__ import annotations

import dataclasses
import os
import selectors
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supervisor.wire.contract import (
    EXIT_CONFIG,
    EXIT_SYSTEM,
    RankPaths,
    control_object,
    rank_environment,
    replace_json,
    trainer_problem,
)
from supervisor.wire.events import Rejected, parse_event
from supervisor.wire.messages import Control, ExitReport, GangOrder, RankAssignment, RankReport
from supervisor.wire.news import URGENT_EVENTS
from supervisor.worker.descendants import kill_session
from supervisor.worker.event_pipe import EventPipe
from supervisor.worker.evidence.living_rank import LivingRank
from supervisor.worker.output import OutputLog
from supervisor.worker.program import launch, rank_base_environment
from supervisor.worker.rank_progress import RankProgress
from supervisor.worker.spool import EventSpool
from supervisor.worker.standby import StandbyInterpreter
from supervisor.worker.standbys import Standbys

TURN_BYTES = 64 << 10  # read from one pipe before the others get their turn
LAST_BYTES = 1 << 20  # read of each pipe after the rank's end, should a survivor still write


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a rank is given by its worker. `news(urgent)`: something to report. `rejected(rank, reason)`: a line of its
    event stream is no event."""

    workdir: Path
    selector: selectors.BaseSelector
    spool: EventSpool
    standbys: Standbys
    news: Callable[[bool], None]
    rejected: Callable[[int, str], None] = lambda rank, reason: None


@dataclass(frozen=True, slots=True)
class _Ended:
    code: int | None
    signal: int | None
    by_us: bool
    at: float  # monotonic seconds
    tail: str


class RankProcess:
    def __init__(self, order: GangOrder, assignment: RankAssignment, directory: Path, around: Surroundings) -> None:
        self.assignment = assignment
        self.pid: int | None = None
        self.ended: _Ended | None = None
        self._order = order
        self._paths = RankPaths(directory)
        self._around = around
        self._stopping = False
        self._kill_at: float | None = None
        self._seen_event = False
        self._progress = RankProgress()
        self._rejected = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._output: OutputLog | None = None
        self._events: EventPipe | None = None
        self._output_pipe = -1
        self._standby: StandbyInterpreter | None = None
        self._cold_because = ""

    def start(self, now: float) -> None:
        """Start the process; what prevents it becomes an exit with a sentence as its last words."""
        if self.ended is not None:
            return
        if problem := trainer_problem(self._order.trainer):
            self._never_started(problem, EXIT_CONFIG, now)
            return
        try:
            self._paths.directory.mkdir(parents=True)
            self._output = OutputLog(self._paths.output)
            self._events = EventPipe(self._paths.events)
            replace_json(self._paths.plan, self._order.plan)
            self.control(self._order.control)
            self._spawn()
        except OSError as error:
            missing = isinstance(error, FileNotFoundError | NotADirectoryError | PermissionError)
            self._never_started(f"the rank cannot be started: {error}", EXIT_CONFIG if missing else EXIT_SYSTEM, now)

    def control(self, control: Control) -> None:
        """Raises OSError."""
        replace_json(self._paths.control, control_object(control, self.assignment.rank))

    def terminate(self, now: float, grace_ms: int) -> None:
        """TERM now, KILL after the grace; a shorter grace than the one that runs takes its place."""
        if self.ended is not None:
            return
        kill_at = now + grace_ms / 1000
        self._kill_at = kill_at if self._kill_at is None else min(self._kill_at, kill_at)
        if self.pid is None:
            self._stopping = True
            self._never_started("stopped before it was started", None, now)
        elif not self._stopping:
            self._stopping = True
            os.kill(self.pid, signal.SIGTERM)

    def escalate(self, now: float) -> float | None:
        """KILL if the grace is over. Returns when to look again (monotonic seconds), None for never."""
        if self.ended is not None or self.pid is None or self._kill_at is None:
            return None
        if now < self._kill_at:
            return self._kill_at
        os.kill(self.pid, signal.SIGKILL)  # its session follows when it has been reaped
        self._kill_at = None
        return None

    def reaped(self, status: int, now: float) -> None:
        """The process has ended with this wait status: end what it left, and read what it said last."""
        assert self.pid is not None
        kill_session(self.pid)
        self._drain(self._read_output)
        self._drain(self._read_events)
        code = os.waitstatus_to_exitcode(status)
        if self._process is not None:
            self._process.returncode = code  # reaped by us; Popen must not wait for the id again
        self._end(code if code >= 0 else None, -code if code < 0 else None, now)

    def report(self, now: float) -> RankReport:
        ended = self.ended
        cold_because = self._cold_because if self._standby is None else self._standby.cold_because
        state = "exited" if ended else "running" if self._seen_event else "starting"
        return RankReport(
            rank=self.assignment.rank,
            state=state,
            pid=self.pid,
            phase=self._progress.phase,
            entered=self._progress.entered,
            completed=self._progress.completed,
            start="cold" if cold_because or self._standby is None else "warm",
            start_reason=cold_because,
            output_bytes=self._output.total_bytes if self._output else 0,
            rejected_events=self._rejected + (self._events.too_long if self._events else 0),
            own_ms=self._progress.own_ms,
            moved=self._progress.moved,
            exit=ExitReport(ended.code, ended.signal, ended.by_us, int((now - ended.at) * 1000), ended.tail)
            if ended
            else None,
        )

    def look(self) -> LivingRank | None:
        """The process to look at, None where none lives. Raises OSError."""
        if self.pid is None or self.ended is not None:
            return None
        # not reaped before `reaped` says so, so never another process's id
        return LivingRank(self.assignment.rank, self.pid, os.pidfd_open(self.pid), self._paths)

    def _spawn(self) -> None:
        trainer = self._order.trainer
        environment = {
            **rank_base_environment(self._around.workdir),
            **trainer.environment,
            **rank_environment(self._order, self.assignment, self._paths),
        }
        if not self._spawn_warm(environment):
            self._spawn_cold(environment)
        assert self._process is not None
        self.pid = self._process.pid
        assert self._events is not None
        self._around.selector.register(self._output_pipe, selectors.EVENT_READ, self._read_output)
        self._around.selector.register(self._events.descriptor, selectors.EVENT_READ, self._read_events)
        self._around.news(True)

    def _spawn_warm(self, environment: dict[str, str]) -> bool:
        trainer = self._order.trainer
        taken = self._around.standbys.take(trainer)
        if isinstance(taken, str):
            self._cold_because = taken
            return False
        try:
            self._process, self._output_pipe = taken.use(dataclasses.asdict(trainer), environment)
        except OSError as error:
            self._around.standbys.give_back(taken)
            self._cold_because = f"its standby is lost: {error}"
            return False
        self._standby = taken
        return True

    def _spawn_cold(self, environment: dict[str, str]) -> None:
        trainer = self._order.trainer
        self._output_pipe, write_end = os.pipe()
        os.set_blocking(self._output_pipe, False)
        try:
            self._process = launch(dataclasses.asdict(trainer), environment, trainer.working_directory, write_end)
        finally:
            os.close(write_end)

    def _read_output(self) -> int:
        """Returns how much was read: 0 when there was nothing."""
        assert self._output is not None
        try:
            data = os.read(self._output_pipe, TURN_BYTES)
        except BlockingIOError:
            return 0
        if not data:  # all writers have closed it; the process may live on
            self._unregister(self._output_pipe)
            return 0
        self._output.append(data)
        return len(data)

    def _read_events(self) -> int:
        assert self._events is not None
        size, lines = self._events.read(TURN_BYTES)
        for line in lines:
            self._take_event(line)
        self._around.spool.flush()
        return size

    def _drain(self, read: Callable[[], int]) -> None:
        left = LAST_BYTES
        while left > 0 and (size := read()):
            left -= size

    def _take_event(self, line: bytes) -> None:
        event = parse_event(line)
        if isinstance(event, Rejected):
            self._reject(event.reason)
            return
        if not self._is_of_this_attempt(event):
            self._reject(f"checkpoint.attempt: it names {event['attempt']}, this is attempt {self._order.number}")
            return
        urgent = not self._seen_event or event["event"] in URGENT_EVENTS
        self._seen_event = True
        urgent |= self._progress.note(event)
        self._around.spool.append(self._order.number, self.assignment.rank, event)
        self._around.news(urgent)

    def _reject(self, reason: str) -> None:
        self._rejected += 1
        self._around.rejected(self.assignment.rank, reason)
        self._around.news(False)

    @property
    def stepped(self) -> bool:
        """Whether it has completed a step in this attempt."""
        return self._progress.completed > 0

    def _is_of_this_attempt(self, event: dict[str, Any]) -> bool:
        """A rank commits checkpoints of its own attempt alone; an alarm may mean an older one."""
        return bool(event["event"] != "checkpoint" or event["attempt"] == self._order.number)

    def _never_started(self, sentence: str, code: int | None, now: float) -> None:
        if self._output is not None:
            self._output.note(sentence)
        self._end(code, None, now, sentence)

    def _end(self, code: int | None, number: int | None, now: float, sentence: str = "") -> None:
        tail = self._output.tail() if self._output else sentence
        self.ended = _Ended(code, number, self._stopping, now, tail)
        if self._output_pipe >= 0:
            self._unregister(self._output_pipe)
            os.close(self._output_pipe)
        if self._events:
            self._unregister(self._events.descriptor)
            self._events.close()
        if self._output:
            self._output.close()
        if self._standby:
            self._standby.close()
        self._around.news(True)

    def _unregister(self, descriptor: int) -> None:
        if descriptor in self._around.selector.get_map():
            self._around.selector.unregister(descriptor)
