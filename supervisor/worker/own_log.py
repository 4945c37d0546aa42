"""The worker's own words go to a file on the disk that its ranks use: when it is full, the words are lost, alone."""

from __future__ import annotations

import io
import os
import sys


class LossyStream(io.TextIOBase):
    """Text to a file descriptor, unbuffered. What it does not take is dropped: no word of ours is worth a rank."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, text: str) -> int:
        try:
            os.write(self._descriptor, text.encode("utf-8", "backslashreplace"))
        except OSError:
            return len(text)  # there is no other place to say it
        return len(text)

    def fileno(self) -> int:
        return self._descriptor


def lose_what_is_not_taken() -> None:
    sys.stdout, sys.stderr = LossyStream(sys.stdout.fileno()), LossyStream(sys.stderr.fileno())
