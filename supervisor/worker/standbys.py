"""The node's standbys: as many as the newest order asks for, each used once, and replaced when there is quiet."""

from __future__ import annotations

import os
import selectors
import sys
from pathlib import Path

from supervisor.wire.messages import Standby, TrainerCommand
from supervisor.worker.descendants import kill_session
from supervisor.worker.standby import StandbyInterpreter

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0  # seconds until one that died is replaced; doubled each time
MAX_SLOTS = 64


class Standbys:
    def __init__(self, workdir: Path, selector: selectors.BaseSelector) -> None:
        self._workdir = workdir
        self._selector = selector
        self._wanted: Standby | None = None
        self._waiting: dict[int, StandbyInterpreter] = {}  # by pid
        self._ending: dict[int, StandbyInterpreter] = {}  # killed, not yet reaped
        self._not_before = float("-inf")
        self._pause = FIRST_PAUSE
        self._failure = ""

    @property
    def pids(self) -> set[int]:
        return {*self._waiting, *self._ending}

    def follow(self, wanted: Standby | None) -> None:
        """The newest order's word. What has imported something else is of no use any more."""
        if wanted is not None and (wanted.slots <= 0 or not wanted.trainer.module or not wanted.trainer.preload):
            wanted = None
        if wanted is None or self._wanted is None or _difference(self._wanted.trainer, wanted.trainer):
            self._end(len(self._waiting))
            self._not_before, self._pause, self._failure = float("-inf"), FIRST_PAUSE, ""
        self._wanted = wanted
        if wanted is not None:
            self._end(len(self._waiting) - wanted.slots)

    def advance(self, now: float, quiet_at: float) -> float | None:
        """Start what is missing, once it takes no time from a gang on its way to its first step, which is at
        `quiet_at`. Returns when to look again (monotonic seconds)."""
        wanted = self._wanted
        if wanted is None or len(self._waiting) >= min(wanted.slots, MAX_SLOTS):
            return None
        due = max(quiet_at, self._not_before)
        if now < due:
            return due
        while len(self._waiting) < min(wanted.slots, MAX_SLOTS):
            try:
                started = StandbyInterpreter(wanted.trainer, self._workdir, self._selector, now)
            except OSError as error:
                self._failed(f"it cannot be started: {error}", now)
                return self._not_before
            self._waiting[started.pid] = started
        return None

    def take(self, trainer: TrainerCommand) -> StandbyInterpreter | str:
        """A standby for a rank of `trainer`, or why there is none. It is out of our hands then."""
        if trainer.command:
            return "a command always starts cold"
        if not trainer.preload:
            return "trainer.preload names no modules"
        if self._wanted is None:
            return "no standby was asked for"
        if difference := _difference(self._wanted.trainer, trainer):
            return f"the standby was started with another {difference}"
        chosen = min(self._waiting.values(), key=lambda standby: (not standby.ready, standby.started_at), default=None)
        if chosen is None:
            return f"no standby is ready: {self._failure or 'the last one was used and is not replaced yet'}"
        del self._waiting[chosen.pid]
        self._pause, self._failure = FIRST_PAUSE, ""
        return chosen

    def give_back(self, standby: StandbyInterpreter) -> None:
        """It was taken and could not be used: it has died, or will."""
        self._ending[standby.pid] = standby
        standby.kill()

    def reaped(self, pid: int, status: int, now: float) -> bool:
        """Whether the process that ended was a standby."""
        standby = self._waiting.pop(pid, None)
        ended = standby or self._ending.pop(pid, None)
        if ended is None:
            return False
        kill_session(pid)
        ended.process.returncode = os.waitstatus_to_exitcode(status)
        ended.drain()
        if standby is not None:
            if now - ended.started_at > LONGEST_PAUSE:
                self._pause = FIRST_PAUSE
            code = ended.process.returncode
            how = f"it ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
            self._failed(f"{how}{': ' if ended.last_words else ''}{ended.last_words}", now)
        ended.close()
        return True

    def stop_all(self) -> None:
        self._wanted = None
        self._end(len(self._waiting))

    def _end(self, count: int) -> None:
        """The newest ones first, since they have cost the least."""
        for standby in sorted(self._waiting.values(), key=lambda s: s.started_at, reverse=True)[: max(0, count)]:
            del self._waiting[standby.pid]
            self._ending[standby.pid] = standby
            standby.kill()

    def _failed(self, how: str, now: float) -> None:
        self._failure = how
        self._not_before = now + self._pause
        print(f"worker: a standby is lost: {how}; the next in {self._pause:.0f} s", file=sys.stderr, flush=True)
        self._pause = min(LONGEST_PAUSE, 2 * self._pause)


def _difference(ours: TrainerCommand, wanted: TrainerCommand) -> str:
    """What a preloaded import may have read that the other does not have; empty when one can stand in for the other."""
    if ours.preload != wanted.preload:
        return "trainer.preload"
    if ours.working_directory != wanted.working_directory:
        return "working directory"
    if ours.environment != wanted.environment:
        names = {*ours.environment.items()} ^ {*wanted.environment.items()}
        return f"environment ({', '.join(sorted({name for name, _ in names})[:8])})"[:300]
    return ""
