"""One standby: an interpreter that has imported the trainer's preload and waits to become a rank, once."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from supervisor.wire.messages import TrainerCommand
from supervisor.wire.text import printable
from supervisor.worker.program import assignment_file, rank_base_environment, start_standby
from supervisor.worker.standby_start import COLD, READY

STILL_IMPORTING = "its standby was still importing"
_KEPT = 2048  # bytes of what it printed last, for the reason of its death
_TURN = 64 << 10


class StandbyInterpreter:
    """Raises OSError where it cannot be started. For the main thread alone, with which it dies."""

    def __init__(self, trainer: TrainerCommand, workdir: Path, selector: selectors.BaseSelector, now: float) -> None:
        self.started_at = now
        self.ready = self.used = False
        self.cold_because = ""  # once used: why the rank started cold all the same
        self._selector = selector
        self._said = b""
        self._printed = b""
        environment = {**rank_base_environment(workdir), **trainer.environment}
        self._channel, theirs = socket.socketpair()
        self._channel.setblocking(False)
        self.output, write_end = os.pipe()
        os.set_blocking(self.output, False)
        try:
            self.process = start_standby(
                trainer.preload, environment, trainer.working_directory, write_end, theirs.fileno()
            )
        except OSError:
            self._channel.close()
            os.close(self.output)
            raise
        finally:
            os.close(write_end)
            theirs.close()
        selector.register(self._channel, selectors.EVENT_READ, self._hear)
        selector.register(self.output, selectors.EVENT_READ, self._discard_output)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def last_words(self) -> str:
        lines = self._printed.decode(errors="replace").strip().splitlines()
        return printable(lines[-1], 300) if lines else ""

    def use(self, trainer: Mapping[str, Any], environment: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], int]:
        """Let it be that rank. Returns the process and where its output comes; both are the caller's now.

        Raises OSError when it has died meanwhile.
        """
        if not self.ready:
            self.cold_because = STILL_IMPORTING
            self._raise_priority()
        assignment = assignment_file(trainer, environment)
        try:
            self._discard_output()
            socket.send_fds(self._channel, [b"\0"], [assignment])
        finally:
            os.close(assignment)
        self.used = True
        self._unregister(self.output)
        return self.process, self.output

    def drain(self) -> None:
        """Take what it printed last."""
        if self.output in self._selector.get_map():
            self._discard_output()

    def close(self) -> None:
        """The process is gone, or soon will be."""
        self._close_channel()
        if not self.used:
            self._unregister(self.output)
            os.close(self.output)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)  # not reaped before `close`, so never another process's id

    def _hear(self) -> None:
        try:
            data = self._channel.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._said = (self._said + data)[:4096]
        self.ready |= self._said.startswith(READY)
        if COLD in self._said and self._said.endswith(b"\n"):
            self.cold_because = printable(self._said.partition(COLD)[2].decode(errors="replace").strip(), 300)
        if not data:
            self._close_channel()

    def _discard_output(self) -> None:
        """What is printed before it is a rank belongs to no rank."""
        try:
            data = os.read(self.output, _TURN)
        except BlockingIOError:
            return
        self._printed = (self._printed + data)[-_KEPT:]
        if not data:
            self._unregister(self.output)

    def _raise_priority(self) -> None:
        try:
            os.sched_setscheduler(self.pid, os.SCHED_OTHER, os.sched_param(0))
        except OSError:
            return  # it does so itself once it has imported all

    def _close_channel(self) -> None:
        if self._channel.fileno() >= 0:
            self._unregister(self._channel)
            self._channel.close()

    def _unregister(self, file: socket.socket | int) -> None:
        if file in self._selector.get_map():
            self._selector.unregister(file)
