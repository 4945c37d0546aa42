"""What a series shows from outside: its completed steps, and which processes are its ranks."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Step:
    """`time`: seconds since the epoch when the rank saw it completed. `incarnation`: grows with every start of the
    gang."""

    time: float
    step: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """Seconds from the fault to the first completed step above the highest before it; steps done twice."""

    seconds: float
    steps_lost: int
    incarnation: int
    new_step_at: float


def recovered(steps: Iterable[Step], fault_at: float) -> Recovered | None:
    """The first *new* step after a fault: of a later incarnation, and above all that was completed before."""
    known = list(steps)
    last = max((s.incarnation for s in known if s.time <= fault_at), default=0)
    highest = max((s.step for s in known if s.incarnation <= last), default=0)
    later = [s for s in known if s.incarnation > last]
    new = next((s for s in later if s.step > highest), None)
    if new is None:
        return None
    return Recovered(new.time - fault_at, sum(1 for s in later if s.time < new.time), new.incarnation, new.time)


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Whole lines alone; nothing where there is no file yet."""
    if not path.exists():
        return
    for line in path.read_bytes().splitlines(keepends=True):
        if line.endswith(b"\n"):
            yield json.loads(line)


def holder_of(path: Path, strangers: Collection[int] = ()) -> int | None:
    """The process that has `path` open, none of `strangers`: how a rank is found without asking its launcher."""
    wanted = str(path.resolve())
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in strangers and _has_open(int(name), wanted):
            return int(name)
    return None


def _has_open(pid: int, wanted: str) -> bool:
    try:
        return any(os.readlink(f"/proc/{pid}/fd/{number}") == wanted for number in os.listdir(f"/proc/{pid}/fd"))
    except OSError:  # it has ended meanwhile
        return False
