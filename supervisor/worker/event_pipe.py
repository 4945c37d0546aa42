"""The worker's end of a rank's event stream: a FIFO that is always drained, cut into lines, whatever comes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from supervisor.wire.events import MAX_LINE_BYTES


class Lines:
    """Cuts a byte stream into lines. One that is longer than the limit is dropped whole, and counted."""

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self.too_long = 0
        self._limit = limit
        self._rest = b""
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that are now complete, without their newlines; empty ones left out."""
        first, *others = data.split(b"\n")
        pieces = [self._rest + first, *others]
        self._rest = pieces.pop()
        for line in pieces:
            if self._skipping:
                self._skipping = False
            elif len(line) > self._limit:
                self.too_long += 1
            elif line.strip():
                yield line
        if len(self._rest) > self._limit or self._skipping:
            self.too_long += not self._skipping
            self._skipping = True
            self._rest = b""


class EventPipe:
    """Creates the FIFO at `path`. Held open for writing as well, so that it never ends when a writer closes it."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path, 0o600)
        self.descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._lines = Lines()

    @property
    def too_long(self) -> int:
        return self._lines.too_long

    def read(self, limit: int) -> tuple[int, list[bytes]]:
        """(bytes read, at most `limit`; the lines they completed)."""
        try:
            data = os.read(self.descriptor, limit)
        except BlockingIOError:
            return 0, []
        return len(data), list(self._lines.feed(data))

    def close(self) -> None:
        os.close(self.descriptor)
