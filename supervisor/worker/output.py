"""A rank's output: drained whatever it prints, kept on disk within a bound, and its end in memory for the incident."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from supervisor.wire.text import printable_lines

ROTATE_BYTES = 8 << 20
TAIL_BYTES = 64 << 10
SENT_TAIL = 16 << 10  # characters of it that travel with an exit


class OutputLog:
    """`path` and, when that has grown to `rotate_bytes`, one older file beside it (`path.1`)."""

    def __init__(self, path: Path, rotate_bytes: int = ROTATE_BYTES) -> None:
        self.total_bytes = 0
        self._path = path
        self._rotate_bytes = rotate_bytes
        self._tail = bytearray()
        self._written = 0
        self._file: int | None = None
        self._open()

    def append(self, data: bytes) -> None:
        self.total_bytes += len(data)
        self._tail += data
        if len(self._tail) > 2 * TAIL_BYTES:
            del self._tail[:-TAIL_BYTES]
        if self._file is None:
            return
        try:
            os.write(self._file, data)
            self._written += len(data)
            if self._written >= self._rotate_bytes:
                self._rotate()
        except OSError as error:  # the disk is full, say: a rank must go on all the same, and its tail is kept
            self._give_up(error)

    def note(self, sentence: str) -> None:
        """Add a line of our own."""
        self.append(f"marin-sup: {sentence}\n".encode())

    def tail(self) -> str:
        """The printable end, at most `SENT_TAIL` characters."""
        return printable_lines(bytes(self._tail[-TAIL_BYTES:]), SENT_TAIL)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            self._file = os.open(self._path, flags, 0o644)
        except OSError as error:
            self._give_up(error)

    def _rotate(self) -> None:
        self.close()
        os.replace(self._path, self._path.with_name(self._path.name + ".1"))
        self._written = 0
        self._open()

    def _give_up(self, error: OSError) -> None:
        print(f"worker: {self._path}: output is no longer written to disk: {error}", file=sys.stderr)
        self.close()
