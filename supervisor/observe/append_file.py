"""A file that grows by whole lines: what a full disk cuts short is taken back, so that it can be written again."""

from __future__ import annotations

import os
from pathlib import Path


class AppendFile:
    """Half a line that a killed process left stays alone: what comes begins on the next one."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        if self.size and not _ends_with_newline(path):
            self.append(b"\n")

    @property
    def size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def append(self, data: bytes) -> None:
        """Visible to readers at once. Raises OSError, and then nothing of `data` is there."""
        start = self.size
        left = memoryview(data)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError:
            os.ftruncate(self._file.fileno(), start)
            raise

    def flush(self) -> None:
        """Make it safe from a crash of the machine."""
        os.fdatasync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
