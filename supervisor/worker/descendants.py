"""Which processes are ours, and their end. Linux: prctl(2) and /proc.

Three nets under each other: a death signal (a process dies with the thread that started it), a subreaper (orphans
come back to the worker, which kills them), and a mark in the environment (what outlived a whole worker is killed by
the next one in the same directory).
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

ENV_MARK = "MARIN_SUP_WORKDIR"
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
_MAX_ENVIRON = 4 << 20


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    session: int


def set_death_signal(number: int) -> None:
    """Be sent `number` when the thread that started this process ends. Kept across exec, not across fork."""
    _prctl(_PR_SET_PDEATHSIG, number)


def become_subreaper() -> None:
    """Orphaned descendants become our children instead of init's."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def processes() -> Iterator[Process]:
    """All living processes that /proc shows; zombies are none."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # the name may hold anything, also ")": the fields begin after the last one
                state, parent, _, session = file.read(4096).rpartition(b")")[2].split()[:4]
        except (OSError, ValueError):
            continue  # gone meanwhile
        if state not in (b"Z", b"X"):
            yield Process(int(name), int(parent), int(session))


def kill_session(leader: int) -> None:
    """KILL every process in the session that `leader` began, until none is left that could fork another."""
    for _ in range(100):
        members = [process.pid for process in processes() if process.session == leader]
        if not members:
            return
        kill_each(members)
        time.sleep(0.001)  # a killed process needs a moment to leave /proc


def kill_all_children(deadline_seconds: float) -> bool:
    """KILL and reap children, and what they leave to us as subreaper, until none is left. Must run in a subreaper.

    Returns False if some were still there at the deadline (in an uninterruptible sleep).
    """
    deadline = time.monotonic() + deadline_seconds
    while time.monotonic() < deadline:
        kill_each(process.pid for process in processes() if process.parent == os.getpid())
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return True
        time.sleep(0.002)
    return False


def kill_marked(mark: str) -> int:
    """KILL every process whose environment carries `mark`, except ourselves and our parent. Returns how many."""
    wanted = f"{ENV_MARK}={mark}".encode()
    spared = {os.getpid(), os.getppid()}
    found = [p.pid for p in processes() if p.pid not in spared and wanted in environment_of(p.pid)]
    kill_each(found)
    return len(found)


def environment_of(pid: int) -> list[bytes]:
    """NAME=VALUE as the process was started with; empty where we may not look."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read(_MAX_ENVIRON).split(b"\0")
    except OSError:
        return []


def kill_each(pids: Iterable[int], number: int = signal.SIGKILL) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _prctl(option: int, argument: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(argument), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")
