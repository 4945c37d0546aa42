"""The run's append-only history: one JSON object a line. Truth for history, never for decisions.

Kinds: note {reason, message} · incident {incident} · attempt {number, layout, nodes, resume} · exit {attempt, rank,
node, code, signal, byUs, tail} · event {attempt, rank, sequence, event} (of the trainer contract). All carry `t`,
milliseconds of the supervisor's clock. A line cut off by a crash is skipped by readers and closed by the writer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from supervisor.observe.append_file import AppendFile
from supervisor.wire.json_file import parse_json

MAX_LINE = 1 << 20
Entry = dict[str, Any]


class Journal:
    """The one writer. `append` makes entries visible at once; `flush` makes them safe."""

    def __init__(self, path: Path) -> None:
        self._file = AppendFile(path)

    def append(self, *entries: Entry) -> None:
        """Raises OSError, and then none of the entries is there."""
        if entries:
            self._file.append(b"".join(_line(entry) for entry in entries))

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def read_journal(path: Path) -> Iterator[Entry]:
    """All whole entries, in order; nothing where there is no journal yet."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        while line := file.readline(MAX_LINE):
            if entry := parse_line(line):
                yield entry


def parse_line(line: bytes) -> Entry | None:
    try:
        entry = parse_json(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and isinstance(entry.get("kind"), str) else None


def _line(entry: Entry) -> bytes:
    return json.dumps(entry, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"
