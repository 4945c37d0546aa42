"""Requests to a running rank, read at every step (trainer contract, version 1)."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

CONTROL_BYTES_MAX = 1 << 16


@dataclass(frozen=True, slots=True)
class Requests:
    """What was newly asked since the last look."""

    save: bool = False
    stop: bool = False
    fail: bool = False


class Control:
    """Follows the control file. Numbers only grow within an attempt: one above the last seen asks once."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._save = 0
        self._fail = 0
        self._stop = False

    def read(self) -> Requests:
        """Look for new requests; one `stat` while the file is unchanged. An unusable file is reported and ignored."""
        if self._path is None:
            return Requests()
        try:
            status = self._path.stat()
            identity = (status.st_ino, status.st_mtime_ns, status.st_size)
            if identity == self._seen:
                return Requests(stop=self._stop)
            with self._path.open("rb") as file:
                save, stop, fail = _parse(file.read(CONTROL_BYTES_MAX + 1))
        except FileNotFoundError:
            return Requests(stop=self._stop)
        except (OSError, ValueError, RecursionError) as error:
            print(f"control file {self._path} ignored: {error}", file=sys.stderr, flush=True)
            return Requests(stop=self._stop)
        requests = Requests(save=save > self._save, stop=stop or self._stop, fail=fail > self._fail)
        self._seen = identity
        self._save, self._fail, self._stop = max(save, self._save), max(fail, self._fail), requests.stop
        return requests


def _parse(text: bytes) -> tuple[int, bool, int]:
    """Return (save, stop, fail). Raises ValueError."""
    if len(text) > CONTROL_BYTES_MAX:
        raise ValueError(f"larger than {CONTROL_BYTES_MAX} bytes")
    found = json.loads(text)
    if not isinstance(found, dict) or found.get("version") != 1:
        raise ValueError("allowed is a JSON object of version 1")
    save, stop, fail = found.get("save"), found.get("stop"), found.get("fail")
    if type(save) is not int or type(fail) is not int or type(stop) is not bool:
        raise ValueError("save and fail must be integers, stop a boolean")
    return save, stop, fail
