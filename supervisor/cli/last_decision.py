"""The newest decision worth explaining, from the end of a run's decision log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from supervisor.api.records import BadRecord, from_json
from supervisor.core.reasons import Reason
from supervisor.driver import Decided
from supervisor.local.rundir import RunDirectory
from supervisor.observe.decision_log import older

LOOKED_AT = 500  # decisions; beyond them the newest of all is taken
ROUTINE = frozenset({Reason.CHECKPOINT_COMMITTED})


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """`line`: as it stands in the log."""

    decided: Decided
    line: bytes


def last_decision(directory: RunDirectory) -> LoggedDecision | None:
    """The newest that told of something, routine apart; else the newest; None where there is none.

    A line that is damaged or cut off is passed over.
    """
    newest: LoggedDecision | None = None
    for number, line in enumerate(_lines_from_the_end(directory.decisions)):
        try:
            logged = LoggedDecision(from_json(Decided, line), line)
        except BadRecord:
            continue
        newest = newest or logged
        if is_telling(logged.decided):
            return logged
        if number >= LOOKED_AT:
            break
    return newest


def is_telling(decided: Decided) -> bool:
    decision = decided.decision
    if decision.incidents or decision.memory.phase is not decided.memory.phase:
        return True
    return any(note.reason not in ROUTINE for note in decision.notes)


def _lines_from_the_end(path: Path) -> Iterator[bytes]:
    """Of both files of the log, which is bounded (16 MiB each)."""
    for file in (path, older(path)):
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            continue
        yield from (line for line in reversed(content.split(b"\n")) if line.strip())
