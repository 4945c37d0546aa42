"""The tasks that the newest order names: each done once per id, its result kept on disk.

Each has a process of its own, but for the few that the agent does on a thread (`thread_tasks`).
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from supervisor.wire.codec import Malformed, decode, encode
from supervisor.wire.contract import replace_json
from supervisor.wire.json_file import read_json
from supervisor.wire.messages import TaskOrder, TaskResult
from supervisor.wire.text import printable_lines
from supervisor.worker.descendants import kill_session
from supervisor.worker.program import rank_base_environment, start_task
from supervisor.worker.thread_tasks import ThreadTasks

AT_ONCE = 2
AGAIN = 2  # how often a task whose process was killed (for memory, say) is started again
MAX_RESULT_BYTES = 3 << 20
MAX_REPORTED_BYTES = 4 << 20  # with a batch of events and the ranks' last words they fit in one report


@dataclass(slots=True)
class _Running:
    order: TaskOrder
    process: subprocess.Popen[bytes]


class Tasks:
    def __init__(self, workdir: Path, news: Callable[[bool], None], on_thread: ThreadTasks) -> None:
        self._workdir = workdir
        self._on_thread = on_thread
        self._directory = workdir / "tasks"
        self._directory.mkdir(parents=True, exist_ok=True)
        self._news = news
        self._ordered: dict[str, TaskOrder] = {}
        self._running: dict[int, _Running] = {}  # by pid
        self._results: dict[str, TaskResult] = {}
        self._killed: dict[str, int] = {}  # how often each was killed by a signal
        self._sizes: dict[str, int] = {}  # bytes of each result that was read from disk

    @property
    def pids(self) -> set[int]:
        return set(self._running)

    def follow(self, ordered: tuple[TaskOrder, ...]) -> None:
        """A task that is no longer named is ended and its result forgotten."""
        self._ordered = {task.id: task for task in ordered}
        for pid, running in self._running.items():
            if running.order.id not in self._ordered:
                kill_session(pid)
        self._results = {name: result for name, result in self._results.items() if name in self._ordered}
        self._sizes = {name: size for name, size in self._sizes.items() if name in self._ordered}
        self._killed = {name: times for name, times in self._killed.items() if name in self._ordered}
        for task in ordered:
            if task.id not in self._results and (known := self._kept_result(task)):
                self._results[task.id] = known
        self._remove_unnamed()

    def _remove_unnamed(self) -> None:
        named = {_file_name(name) for name in self._ordered}
        try:
            for path in self._directory.iterdir():
                if path.name.partition(".")[0] not in named:
                    path.unlink(missing_ok=True)
        except OSError as error:  # left-over files harm nothing
            print(f"worker: {self._directory}: what is done cannot be removed: {error}", file=sys.stderr)

    def advance(self) -> None:
        """Take what the thread has done, and start what may start."""
        while (ended := self._on_thread.finished()) is not None:
            self._keep(*ended)
        busy = {running.order.id for running in self._running.values()}
        for name, order in self._ordered.items():
            if name in self._results or name in busy:
                continue
            if self._on_thread.knows(order):
                self._on_thread.start(order)
            elif len(self._running) < AT_ONCE:
                self._start(order)

    def reaped(self, pid: int, status: int) -> bool:
        """Whether the process that ended was a task."""
        running = self._running.pop(pid, None)
        if running is None:
            return False
        kill_session(pid)
        running.process.returncode = os.waitstatus_to_exitcode(status)
        order = running.order
        if order.id not in self._ordered:
            return True
        result = self._kept_result(order)
        if result is None and running.process.returncode < 0 and self._killed.get(order.id, 0) < AGAIN:
            self._killed[order.id] = self._killed.get(order.id, 0) + 1  # says nothing of the task: started again
            return True
        self._results[order.id] = result or self._failed(order, running.process.returncode)
        self._news(True)
        return True

    def stop_all(self) -> None:
        self._ordered = {}
        for pid in self._running:
            kill_session(pid)

    def results(self) -> tuple[TaskResult, ...]:
        """What fits in a report, the oldest first; the rest comes when those are no longer named."""
        chosen: list[TaskResult] = []
        left = MAX_REPORTED_BYTES
        for name, result in self._results.items():
            left -= self._sizes.get(name, 0)
            if left < 0:
                break
            chosen.append(result)
        return tuple(chosen)

    def _start(self, order: TaskOrder) -> None:
        try:
            self._directory.mkdir(parents=True, exist_ok=True)  # a trainer may have removed anything
            replace_json(self._path(order, "order"), encode(order))
            with self._path(order, "log").open("wb") as log:
                arguments = [str(self._path(order, "order")), str(self._path(order, "result"))]
                process = start_task(arguments, rank_base_environment(self._workdir), log.fileno())
        except OSError as error:
            self._results[order.id] = TaskResult(order.id, order.kind, False, error=f"it cannot be started: {error}")
            self._news(True)
            return
        self._running[process.pid] = _Running(order, process)

    def _keep(self, order: TaskOrder, result: TaskResult) -> None:
        """A result that no process has written."""
        if order.id not in self._ordered:
            return
        self._results[order.id] = result
        self._news(True)
        path = self._path(order, "result")
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            replace_json(path, encode(result))
            self._sizes[order.id] = path.stat().st_size
        except OSError as error:  # told all the same; only a restarted worker would do it again
            print(f"worker: {path}: the result cannot be kept: {error}", file=sys.stderr)

    def _kept_result(self, order: TaskOrder) -> TaskResult | None:
        path = self._path(order, "result")
        try:
            self._sizes[order.id] = size = path.stat().st_size
            if size > MAX_RESULT_BYTES:
                self._sizes[order.id] = 0
                error = f"the result is larger than {MAX_RESULT_BYTES} bytes"
                return TaskResult(order.id, order.kind, False, error=error)
            return decode(TaskResult, read_json(path, MAX_RESULT_BYTES))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, Malformed) as error:
            print(f"worker: {path}: the task is done again: {error}", file=sys.stderr)
            return None

    def _failed(self, order: TaskOrder, code: int) -> TaskResult:
        try:
            words = printable_lines(self._path(order, "log").read_bytes()[-4096:], 1000)
        except OSError as error:
            words = str(error)
        ended = f"signal {-code}" if code < 0 else f"exit code {code}"
        return TaskResult(order.id, order.kind, False, error=f"its process ended with {ended}: {words}")

    def _path(self, order: TaskOrder, suffix: str) -> Path:
        return self._directory / f"{_file_name(order.id)}.{suffix}"


def _file_name(identifier: str) -> str:
    """Whatever an id holds, its name stays in the directory."""
    return hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:32]
