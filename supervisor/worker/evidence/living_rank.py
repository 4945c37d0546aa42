"""One rank to look at, and what /proc says of it. Providers get these; they know nothing else of the worker."""

from __future__ import annotations

import os
import select
from dataclasses import dataclass
from pathlib import Path

from supervisor.wire.contract import RankPaths

STOPPED = ("T", "t")  # by SIGSTOP, and by a debugger
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Stat:
    """`state`: the kernel's letter for the main thread. `cpu_seconds`: used so far, by all threads."""

    state: str
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class LivingRank:
    """`pidfd` stands for this very process: after its end it never means another one with the same id."""

    rank: int
    pid: int
    pidfd: int
    paths: RankPaths

    @property
    def ended(self) -> bool:
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return bool(poll.poll(0))

    def stat(self) -> Stat:
        """Raises OSError once the process is gone."""
        text = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8", errors="replace")
        # proc_pid_stat(5); the name may hold anything, also ")": the fields begin after the last one
        fields = text.rpartition(")")[2].split()
        return Stat(fields[0], (int(fields[11]) + int(fields[12])) / _TICKS)

    def catches(self, number: int) -> bool:
        """Whether it has a handler for the signal, so that one harms it not. Raises OSError once it is gone."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8", errors="replace")
        caught = next((line for line in status.splitlines() if line.startswith("SigCgt:")), "SigCgt: 0")
        return bool(int(caught.split()[1], 16) >> (number - 1) & 1)

    def close(self) -> None:
        os.close(self.pidfd)
