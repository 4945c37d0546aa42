"""One task in a process of its own: `python -m supervisor.worker.task ORDER RESULT PARENT`.

ORDER holds a TaskOrder as JSON; RESULT is replaced by a TaskResult. An error is a result, too.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from supervisor.wire.codec import decode, encode
from supervisor.wire.contract import replace_json
from supervisor.wire.messages import TaskOrder, TaskResult
from supervisor.worker.check import check
from supervisor.worker.collect import collect
from supervisor.worker.descendants import set_death_signal
from supervisor.worker.set_aside import set_aside
from supervisor.worker.survey import survey
from supervisor.worker.task_answer import answer

KINDS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "survey": survey,
    "check": check,
    "set-aside": set_aside,
    "collect": collect,
}
BY_THE_AGENT = ("evidence",)  # on a thread of it


def main() -> int:
    order_path, result_path, parent = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    set_death_signal(signal.SIGKILL)
    if os.getppid() != parent:
        return 75
    order = decode(TaskOrder, json.loads(order_path.read_bytes()))
    replace_json(result_path, encode(perform(order)))
    return 0


def perform(order: TaskOrder) -> TaskResult:
    """The task's result; `ok` is false where it could not be done, with a sentence why. Never raises."""
    action = KINDS.get(order.kind)
    if action is None:
        known = ", ".join(sorted({*KINDS, *BY_THE_AGENT}))
        return TaskResult(order.id, order.kind[:100], False, error=f"this worker knows the tasks {known}")
    return answer(order, lambda: action(order.arguments))


if __name__ == "__main__":
    sys.exit(main())
