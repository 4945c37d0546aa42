"""JSON from files that anybody may have written or damaged: bounded, from regular files alone, one kind of error."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

MAX_BYTES = 1 << 20


def parse_json(data: bytes) -> Any:
    """Raises ValueError for whatever is no JSON, and for what is nested deeper than the parser goes."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_json(path: Path, limit: int = MAX_BYTES) -> Any:
    """Raises OSError for what cannot be read, ValueError for what is no JSON, no regular file, or above `limit` bytes.

    A pipe or a device must not keep the reader waiting, hence O_NONBLOCK.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("not a regular file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"longer than {limit} bytes")
    return parse_json(data)
