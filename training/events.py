"""What a rank says about itself: one JSON object a line, written whole (trainer contract, version 1)."""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

LINE_BYTES_MAX = 16384  # the contract's bound
TEXT_MAX = 1000  # characters of a reason or message


class Events:
    """Appends events to a file or a pipe. Safe to call from several threads; without a path it says nothing.

    If the reader of a pipe goes away the rank trains on: that is said once on stderr and later events are dropped.
    """

    def __init__(self, path: Path | None) -> None:
        """Raises OSError where `path` cannot be opened. Opening a pipe waits for its reader."""
        self._lock = threading.Lock()
        self._descriptor = None if path is None else os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def emit(self, event: dict[str, Any]) -> None:
        """Write one event, stamped with this rank's clock."""
        if self._descriptor is None:
            return
        line = (
            json.dumps({"time": time.time(), **_clean(event)}, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        )
        if len(line) > LINE_BYTES_MAX:
            raise ValueError(
                f"an event of kind {event.get('event')!r} has {len(line)} bytes, at most {LINE_BYTES_MAX} are allowed"
            )
        with self._lock:
            self._write(line)

    def _write(self, line: bytes) -> None:
        try:
            while line and self._descriptor is not None:  # a pipe may take a part of a long line
                line = line[os.write(self._descriptor, line) :]
        except OSError as error:
            self._descriptor = None
            print(f"events can no longer be written ({error.strerror}); training goes on", file=sys.stderr, flush=True)

    def phase(self, name: str, reason: str | None = None) -> None:
        self.emit({"event": "phase", "phase": name} | ({} if reason is None else {"reason": reason}))

    def alarm(self, kind: str, message: str, attempt: int | None = None, step: int | None = None) -> None:
        where = {"attempt": attempt, "step": step}
        self.emit(
            {"event": "alarm", "kind": kind, "message": message} | {k: v for k, v in where.items() if v is not None}
        )


def _clean(value: Any) -> Any:
    """Bound texts, and write numbers that JSON does not know as null."""
    if isinstance(value, str):
        return value if len(value) <= TEXT_MAX else value[: TEXT_MAX - 3] + "..."
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _clean(inner) for key, inner in value.items()}
    return value
