"""The checkpoint tree as it is on disk: every attempt, every step, and whether its manifest verifies."""

from __future__ import annotations

from typing import Any

from supervisor.wire.manifest import attempts_in, steps_in, verify_step
from supervisor.worker.tree import root_of

MAX_STEPS = 20_000  # a report has a bound; retention keeps a tree far below it


def survey(arguments: dict[str, Any]) -> dict[str, Any]:
    """{root} -> {attempts, steps: [{attempt, step, state, reason, tokens, parent}]}. No root: nothing."""
    root = root_of(arguments)
    if not root.exists():
        return {"attempts": [], "steps": []}
    attempts: list[int] = []
    steps: list[dict[str, Any]] = []
    for attempt, directory in attempts_in(root):
        attempts.append(attempt)
        for step, path in steps_in(directory):
            if len(steps) >= MAX_STEPS:
                raise ValueError(f"{root} holds more than {MAX_STEPS} steps; collect some first")
            finding = verify_step(path, attempt, step)
            steps.append(
                {
                    "attempt": attempt,
                    "step": step,
                    "state": finding.state,
                    "reason": finding.reason,
                    "tokens": finding.tokens,
                    "parent": list(finding.parent) if finding.parent else None,
                }
            )
    return {"attempts": attempts, "steps": steps}
