"""The worker processes of the laptop's nodes: each with its ranks below it, apart from our terminal and our fate."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from supervisor.local.rundir import RunDirectory, write_json
from supervisor.wire.json_file import read_json

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Process:
    """`started` is the kernel's start time in clock ticks: a pid alone may be another process by now."""

    pid: int
    started: int

    def alive(self) -> bool:
        stat = _stat(self.pid)
        return stat is not None and stat.started == self.started and stat.state not in "ZX"


@dataclass(frozen=True, slots=True)
class _Stat:
    parent: int
    state: str
    started: int


class WorkerProcesses:
    """Starts at most one worker per node; finds those of an earlier supervisor by what they left in their folder."""

    def __init__(self, directory: RunDirectory, environment: dict[str, str]) -> None:
        self._directory = directory
        self._environment = environment
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def find(self, node: str) -> Process | None:
        """The node's worker, if it lives."""
        child = self._children.get(node)
        if child is not None:
            child.poll()  # reap it, should it have ended
        folder = self._folder(node)
        process = _read(folder / "worker.json") or _by_command_line(node, folder)
        return process if process is not None and process.alive() else None

    def start(self, node: str) -> None:
        """Nothing happens where one lives already."""
        if self.find(node) is not None:
            return
        folder = self._folder(node)
        folder.mkdir(parents=True, exist_ok=True)
        sync = str(self._directory.sync.resolve())
        command = [sys.executable, "-m", "supervisor.worker", "--node", node, "--sync", sync, "--workdir", str(folder)]
        with (folder / "worker.log").open("ab") as output:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # a Ctrl-C in our terminal is ours alone, and we may die alone
                env=self._environment,
            )
        self._children[node] = child
        stat = _stat(child.pid)
        write_json(folder / "worker.json", {"pid": child.pid, "started": stat.started if stat else 0})

    def _folder(self, node: str) -> Path:
        return self._directory.node(node).resolve()

    def kill(self, node: str) -> None:
        """The whole node at once, ranks and all, as a power cut would."""
        process = self.find(node)
        if process is None:
            return
        for pid in [*descendants(process.pid), process.pid]:
            _signal(pid, signal.SIGKILL)
        child = self._children.pop(node, None)
        if child is not None:
            child.wait()

    def terminate(self, node: str) -> None:
        """Ask the worker to stop its ranks and leave."""
        process = self.find(node)
        if process is not None:
            _signal(process.pid, signal.SIGTERM)

    def wait_gone(self, nodes: tuple[str, ...], seconds: float, hurry: Callable[[], bool]) -> tuple[str, ...]:
        """Wait until these workers have ended; those that still live after `seconds`, or once `hurry` says so, are
        returned.
        """
        deadline = time.monotonic() + seconds
        left = nodes
        while left and time.monotonic() < deadline and not hurry():
            left = tuple(node for node in left if self.find(node) is not None)
            if left:
                time.sleep(0.02)
        return left


def descendants(pid: int) -> list[int]:
    """Every process below `pid`, the deepest last."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := _stat(int(name))) is not None:
            children.setdefault(stat.parent, []).append(int(name))
    found, frontier = [], [pid]
    while frontier:
        frontier = [child for parent in frontier for child in children.get(parent, ())]
        found.extend(frontier)
    return found


def _stat(pid: int) -> _Stat | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return _Stat(parent=int(fields[1]), state=fields[0], started=int(fields[19]))


def _read(path: Path) -> Process | None:
    try:
        data = read_json(path)
        return Process(int(data["pid"]), int(data["started"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _by_command_line(node: str, folder: Path) -> Process | None:
    """The worker whose `worker.json` was damaged or deleted. Its agent is a fork of it, and so looks the same."""
    ours = {b"supervisor.worker", b"--node", os.fsencode(node), b"--workdir", os.fsencode(folder)}
    found: dict[int, _Stat] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and ours <= _arguments(int(name)) and (stat := _stat(int(name))) is not None:
            found[int(name)] = stat
    outermost = [Process(pid, stat.started) for pid, stat in found.items() if stat.parent not in found]
    return outermost[0] if outermost else None


def _arguments(pid: int) -> set[bytes]:
    try:
        return set(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"))
    except OSError:
        return set()


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        log.debug("process %d had ended already", pid)
