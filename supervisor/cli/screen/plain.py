"""Progress without a terminal: one line per note, and one of progress now and then. No control codes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

from supervisor.cli import amounts
from supervisor.cli.incident_words import Closings, closing
from supervisor.cli.run_lookup import as_typed
from supervisor.core.memory import Memory, Stage
from supervisor.local.rundir import RunDirectory
from supervisor.local.screen import View
from supervisor.observe.progress import Progress
from supervisor.wire.text import printable

EVERY_MS = 10_000
PARTS = 10  # a line, too, whenever another tenth of the steps is done
MAX_LINE = 1000
Write = Callable[[str], None]
log = logging.getLogger(__name__)


class PlainScreen:
    """`name`: of the manifest, which the core uses in its sentences."""

    def __init__(self, name: str, directory: RunDirectory, write: Write | None = None) -> None:
        self._name, self._directory = name, directory
        self._write = write or _Stdout()
        self._told_ms = 0
        self._told_part = -1
        self._told_step = -1
        self._doing = ""
        self._closings = Closings()

    def show(self, view: View) -> None:
        at = amounts.clock(view.now_ms)
        for note in view.notes:
            self._say(at, f"{note.reason.value}: {note.message}")
        for incident in self._closings.new(view.incidents):
            self._write(f"{at} {closing(incident)}")
        doing = f"{view.memory.phase.value}: {view.memory.message}"
        if doing != self._doing and view.memory.message and not view.notes:
            self._say(at, doing)
        self._doing = doing
        if self._due(view):
            self._write(f"{at} {progress_line(view.memory, view.progress)}")

    def close(self) -> None:
        return

    def _say(self, at: str, text: str) -> None:
        self._write(printable(f"{at} {as_typed(text, self._name, self._directory)}", MAX_LINE))

    def _due(self, view: View) -> bool:
        attempt, total = view.memory.attempt, view.memory.total_steps
        if attempt is None or attempt.stage is not Stage.STEPPING or attempt.completed == self._told_step:
            return False
        part = attempt.completed * PARTS // total if total else 0
        if part == self._told_part and view.now_ms - self._told_ms < EVERY_MS:
            return False
        self._told_part, self._told_ms, self._told_step = part, view.now_ms, attempt.completed
        return True


def progress_line(memory: Memory, progress: Progress) -> str:
    """`step 40 of 160, loss 2.412, 12.3k tokens/s, MFU 31% (measured peak), attempt 2`."""
    attempt = memory.attempt
    step = attempt.completed if attempt else memory.high_step
    parts = [f"step {step} of {memory.total_steps}" if memory.total_steps else f"step {step}"]
    if progress.loss is not None:
        parts.append(f"loss {amounts.loss(progress.loss)}")
    if progress.tokens_per_second is not None:
        parts.append(f"{amounts.count(progress.tokens_per_second)} tokens/s")
    if progress.mfu is not None:
        measured = " (measured peak)" if progress.peak_is_measured else ""
        parts.append(f"MFU {amounts.share(progress.mfu)}{measured}")
    if attempt is not None:
        parts.append(f"attempt {attempt.number} on {attempt.placement.layout}")
    return ", ".join(parts)


class _Stdout:
    """Line by line, until nobody reads any more: that ends the lines, never the run."""

    def __init__(self) -> None:
        self._open = True

    def __call__(self, line: str) -> None:
        if not self._open:
            return
        try:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
        except OSError as error:
            log.warning("nobody reads our output any more: %s", error)
            self._open = False
