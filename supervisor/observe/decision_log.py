"""Every pass that changed something, whole, so that it can be decided again. Bounded: two files, the older dropped."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from supervisor.api.records import BadRecord, from_json, to_json
from supervisor.core.decide import decide
from supervisor.core.memory import Memory
from supervisor.driver import Decided
from supervisor.observe.append_file import AppendFile

MAX_BYTES = 16 << 20
log = logging.getLogger(__name__)


class DecisionLog:
    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._file = AppendFile(path)

    def append(self, decided: Decided) -> None:
        if not changed_something(decided):
            return
        if self._file.size > self._max_bytes:
            self._rotate()
        self._file.append(to_json(decided) + b"\n")

    def close(self) -> None:
        self._file.close()

    def _rotate(self) -> None:
        self._file.close()
        os.replace(self._path, older(self._path))
        self._file = AppendFile(self._path)


def older(path: Path) -> Path:
    return path.with_suffix(".older.jsonl")


def changed_something(decided: Decided) -> bool:
    """Progress and the passing of time alone are no change."""
    decision = decided.decision
    if decision.actions or decision.notes or decision.incidents:
        return True
    return _without_progress(decided.memory) != _without_progress(decision.memory)


def read_decisions(path: Path) -> Iterator[Decided]:
    """The decisions still kept, oldest first; a line that is damaged or cut off is skipped."""
    for file in (older(path), path):
        if not file.exists():
            continue
        with file.open("rb") as lines:
            for line in lines:
                try:
                    yield from_json(Decided, line)
                except BadRecord as error:
                    log.warning("%s: a decision cannot be read and is passed over: %s", file, error)


def reproduces(decided: Decided) -> bool:
    """Whether today's core decides the same again."""
    again = decide(decided.spec, decided.memory, decided.observation, decided.now_ms)
    return again == decided.decision


def _without_progress(memory: Memory) -> Memory:
    attempt = memory.attempt and replace(memory.attempt, completed=0, progressed_ms=0)
    ledger = replace(memory.ledger, at_ms=0, run=type(memory.ledger.run)(), attempt=type(memory.ledger.run)())
    return replace(memory, revision=0, attempt=attempt, ledger=ledger)
