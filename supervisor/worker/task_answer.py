"""What a task's work gives, or raises, as its result: an error is one, too."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from supervisor.wire.messages import TaskOrder, TaskResult
from supervisor.wire.text import printable

Work = Callable[[], dict[str, Any]]


def answer(order: TaskOrder, work: Work) -> TaskResult:
    """`ok` is false where it could not be done, with a sentence why. Never raises."""
    try:
        return TaskResult(order.id, order.kind, True, work())
    except Exception as error:  # noqa: BLE001 (an error is a result)
        traceback.print_exc()
        return TaskResult(order.id, order.kind, False, error=printable(f"{type(error).__name__}: {error}", 1000))
