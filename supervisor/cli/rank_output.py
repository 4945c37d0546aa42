"""The output files of a run's ranks: which there are, and reading on in them while they grow and rotate."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from supervisor.local.rundir import RunDirectory
from supervisor.wire.text import printable_lines

MAX_LINE = 64 << 10
_ATTEMPT = re.compile(r"a([0-9]{4,9})")
_RANK = re.compile(r"rank-([0-9]{4,9})")


@dataclass(frozen=True, slots=True, order=True)
class RankOutput:
    """`path`: the newer of the two files; the older lies beside it once there is one."""

    attempt: int
    rank: int
    node: str
    path: Path

    @property
    def older(self) -> Path:
        return self.path.with_name(f"{self.path.name}.1")


def find_outputs(directory: RunDirectory) -> list[RankOutput]:
    """Every rank's output of every attempt, in order."""
    found = []
    for path in directory.nodes.glob("*/a*/rank-*/output.log"):
        attempt, rank = _ATTEMPT.fullmatch(path.parts[-3]), _RANK.fullmatch(path.parts[-2])
        if attempt and rank:
            found.append(RankOutput(int(attempt[1]), int(rank[1]), path.parts[-4], path))
    return sorted(found)


def last_lines(output: RankOutput, count: int) -> tuple[list[str], Follower]:
    """The last `count` lines (0: all that is kept), and a reader of what comes after them."""
    follower = Follower(output)
    lines = follower.everything()
    return lines[-count:], follower


def fit(line: bytes) -> str:
    """One line of a program's output, bounded, with its control characters escaped."""
    return printable_lines(line.rstrip(b"\r"), MAX_LINE)


@dataclass(slots=True)
class Follower:
    """Reads on where it stopped."""

    output: RankOutput
    _inode: int = 0
    _at: int = 0
    _rest: bytes = b""

    def everything(self) -> list[str]:
        """All that is kept until now, with an unfinished last line."""
        before = _read(self.output.older, 0)[1]
        self._inode, data = _read(self.output.path, 0)
        self._at = len(data)
        lines = (before + data).split(b"\n")
        return [fit(line) for line in (lines if lines[-1] else lines[:-1])]

    def more(self) -> list[str]:
        """Whole lines that have come since the last call."""
        inode, new = _read(self.output.path, self._at)
        if inode != self._inode:  # rotated: the file that we were reading is the older one by now
            older, rest = _read(self.output.older, self._at)
            inode, new = _read(self.output.path, 0)
            self._rest += rest if older == self._inode else b""
            self._inode, self._at = inode, 0
        self._at += len(new)
        *lines, self._rest = (self._rest + new).split(b"\n")
        if len(self._rest) > MAX_LINE:
            lines.append(self._rest)
            self._rest = b""
        return [fit(line) for line in lines]


def _read(path: Path, at: int) -> tuple[int, bytes]:
    """(which file it is, its content from `at` on); (0, nothing) where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(at)
            return os.fstat(file.fileno()).st_ino, file.read()
    except FileNotFoundError:
        return 0, b""
