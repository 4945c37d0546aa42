"""Tasks on a thread of the agent: those that cannot wait for a new interpreter, and need what only the agent knows."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any

from supervisor.wire.messages import TaskOrder, TaskResult
from supervisor.worker.task_answer import Work, answer

Begin = Callable[[dict[str, Any]], Work]  # takes the arguments, on the main thread; what it returns runs on another


class ThreadTasks:
    """One at a time. For the main thread alone; `wake` is called when a result can be taken."""

    def __init__(self, kinds: Mapping[str, Begin], wake: Callable[[], None]) -> None:
        self._kinds = kinds
        self._wake = wake
        self._busy = False
        self._finished: queue.SimpleQueue[tuple[TaskOrder, TaskResult]] = queue.SimpleQueue()

    def knows(self, order: TaskOrder) -> bool:
        return order.kind in self._kinds

    def start(self, order: TaskOrder) -> None:
        """Unless another one runs: then ask again after that."""
        if self._busy:
            return
        self._busy = True
        try:
            work = self._kinds[order.kind](order.arguments)
        except (ValueError, OSError) as error:
            work = _raising(error)
        threading.Thread(target=self._run, args=(order, work), name=f"task-{order.kind}", daemon=True).start()

    def finished(self) -> tuple[TaskOrder, TaskResult] | None:
        """What has ended since the last call."""
        try:
            ended = self._finished.get_nowait()
        except queue.Empty:
            return None
        self._busy = False
        return ended

    def _run(self, order: TaskOrder, work: Work) -> None:
        self._finished.put((order, answer(order, work)))
        self._wake()


def _raising(error: Exception) -> Work:
    def work() -> dict[str, Any]:
        raise error

    return work
