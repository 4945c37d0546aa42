"""Requests to a running rank, read at every step (trainer contract, version 1)."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

CONTROL_BYTES_MAX = 1 << 16
SLOW_MS_MAX = 3_600_000  # an hour a step; more is a slip of the pen, and too much more no sleep can take


@dataclass(frozen=True, slots=True)
class Requests:
    """What was newly asked since the last look; `stop` and `slow_seconds` (of each step) are asked until withdrawn."""

    save: bool = False
    stop: bool = False
    fail: bool = False
    hang: bool = False
    spin: bool = False
    slow_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Asked:
    """The file's own numbers."""

    save: int = 0
    stop: bool = False
    fail: int = 0
    hang: int = 0
    spin: int = 0
    slow_ms: int = 0

    def since(self, before: _Asked) -> Requests:
        newly = {name: getattr(self, name) > getattr(before, name) for name in ("save", "fail", "hang", "spin")}
        return Requests(stop=self.stop, slow_seconds=self.slow_ms / 1000, **newly)

    def after(self, before: _Asked) -> _Asked:
        """With nothing taken back that only grows."""
        grown = {name: max(getattr(self, name), getattr(before, name)) for name in ("save", "fail", "hang", "spin")}
        return replace(self, stop=self.stop or before.stop, **grown)


class Control:
    """Follows the control file. Numbers only grow within an attempt: one above the last seen asks once.

    A hang or spin that the file holds already when the attempt starts has happened, and does not happen again.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._identity: tuple[int, int, int] | None = None
        found = self._look()
        self._identity = None  # the first read looks again: at what is asked for besides
        self._last = _Asked() if found is None else _Asked(hang=found.hang, spin=found.spin)

    def read(self) -> Requests:
        """Look for new requests; one `stat` while the file is unchanged. An unusable file is reported and ignored."""
        asked = (self._look() or self._last).after(self._last)
        requests = asked.since(self._last)
        self._last = asked
        return requests

    def _look(self) -> _Asked | None:
        """What the file says; None where it is not there, unusable, or the one of the last look."""
        if self._path is None:
            return None
        try:
            status = self._path.stat()
            identity = (status.st_ino, status.st_mtime_ns, status.st_size)
            if identity == self._identity:
                return None
            with self._path.open("rb") as file:
                asked = _parse(file.read(CONTROL_BYTES_MAX + 1))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            print(f"control file {self._path} ignored: {error}", file=sys.stderr, flush=True)
            return None
        self._identity = identity
        return asked


def _parse(text: bytes) -> _Asked:
    """Raises ValueError."""
    if len(text) > CONTROL_BYTES_MAX:
        raise ValueError(f"larger than {CONTROL_BYTES_MAX} bytes")
    found = json.loads(text)
    if not isinstance(found, dict) or found.get("version") != 1:
        raise ValueError("allowed is a JSON object of version 1")
    save, stop, fail = found.get("save"), found.get("stop"), found.get("fail")
    if type(save) is not int or type(fail) is not int or type(stop) is not bool:
        raise ValueError("save and fail must be integers, stop a boolean")
    return replace(_parse_chaos(found.get("chaos", {})), save=save, stop=stop, fail=fail)


def _parse_chaos(found: Any) -> _Asked:
    """The faults of the member `chaos`; one of a kind that this trainer does not know is no fault of it. Raises
    ValueError.
    """
    if not isinstance(found, dict):
        raise ValueError("chaos must be a JSON object")
    hang, spin, slow_ms = (found.get(name, 0) for name in ("hang", "spin", "slowMs"))
    if any(type(number) is not int or number < 0 for number in (hang, spin, slow_ms)) or slow_ms > SLOW_MS_MAX:
        raise ValueError(f"chaos.hang, spin and slowMs must be integers of at least 0, slowMs at most {SLOW_MS_MAX}")
    return _Asked(hang=hang, spin=spin, slow_ms=slow_ms)
