"""Where each rank's main thread is in Python, also while C code (a collective, say) does not return.

The rank's launcher has registered a handler (`supervisor.worker.stacks`) that appends all threads' frames to a file of
the rank. Only a process that has such a handler and runs is signalled: any other would die of the signal, or keep it.
"""

from __future__ import annotations

import os
import re
import signal
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from supervisor.wire.text import printable
from supervisor.worker.evidence.living_rank import STOPPED, LivingRank
from supervisor.worker.stacks import STACKS_SIGNAL

ANSWER_SECONDS = 0.5
LOOK_EVERY = 0.01
SETTLED_SECONDS = 0.1  # without growth: the dump is over, although its end cannot be recognised
MAX_FILE_BYTES = 1 << 20  # then the rank's file is emptied
MAX_DUMP_BYTES = 256 << 10
MAX_FRAMES, MAX_FRAME = 32, 200

# faulthandler's format (CPython, Python/traceback.c). It tells the main thread last, as the oldest one, and that ends
# with what runs every rank, `python -m`; after 100 frames it says no more than "..."
_THREAD = re.compile(r"(Current t|T)hread 0x[0-9a-f]+ .*\(most recent call first\):")
_FRAME = re.compile(r'  File (?:"(.*)"|\?\?\?), line (\d+|\?\?\?) in (.*)')
_OUTERMOST = b" in _run_module_as_main\n"
_DEEPER = b"\n  ...\n"


class Unseen(Exception):
    """Why a rank shows no stack, in a sentence."""


@dataclass(slots=True)
class _Dump:
    """What a rank that was asked appends to its file. `descriptor` is its owner's to close."""

    rank: LivingRank
    descriptor: int
    start: int
    size: int
    grown_at: float

    def over(self, now: float) -> bool:
        size = os.fstat(self.descriptor).st_size
        if size != self.size:
            self.size, self.grown_at = size, now
        if size <= self.start:
            return False
        return now - self.grown_at > SETTLED_SECONDS or self.text().endswith(_OUTERMOST)

    def text(self) -> bytes:
        start = max(self.start, self.size - MAX_DUMP_BYTES)
        return os.pread(self.descriptor, self.size - start, start)

    def close(self) -> None:
        os.close(self.descriptor)


def python_stack(ranks: Sequence[LivingRank]) -> dict[int, dict[str, Any]]:
    """{rank: {stack}}, innermost frame first, or {rank: {error}}, within ANSWER_SECONDS for all together."""
    facts: dict[int, dict[str, Any]] = {}
    dumps: list[_Dump] = []
    try:
        for rank in ranks:
            try:
                dumps.append(_ask(rank))
            except (Unseen, OSError) as problem:
                facts[rank.rank] = {"error": str(problem)}
        _wait_for(dumps)
        for dump in dumps:
            facts[dump.rank.rank] = _facts(dump)
    finally:
        for dump in dumps:
            dump.close()
    return facts


def _ask(rank: LivingRank) -> _Dump:
    """Raises Unseen or OSError when the rank is not asked."""
    if rank.stat().state in STOPPED:
        raise Unseen("stopped, so it shows no stack")
    if not rank.catches(STACKS_SIGNAL):
        name = signal.Signals(STACKS_SIGNAL).name
        raise Unseen(f"no Python stack: it has no handler for {name} (started by `command`, or still importing)")
    descriptor = _open(rank)
    try:
        if os.fstat(descriptor).st_size > MAX_FILE_BYTES:
            os.ftruncate(descriptor, 0)
        size = os.fstat(descriptor).st_size
        signal.pidfd_send_signal(rank.pidfd, STACKS_SIGNAL)
    except OSError:
        os.close(descriptor)
        raise
    return _Dump(rank, descriptor, size, size, time.monotonic())


def _open(rank: LivingRank) -> int:
    """The trainer may have put anything in the file's place. Raises Unseen or OSError."""
    name = rank.paths.stacks.name
    try:
        descriptor = os.open(rank.paths.stacks, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Unseen(f"no Python stack: its file {name} cannot be opened: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Unseen(f"no Python stack: its file {name} has been replaced by something else")
    return descriptor


def _wait_for(dumps: Sequence[_Dump]) -> None:
    until = time.monotonic() + ANSWER_SECONDS
    pending = list(dumps)
    while (now := time.monotonic()) < until and (pending := [dump for dump in pending if not dump.over(now)]):
        time.sleep(LOOK_EVERY)


def _facts(dump: _Dump) -> dict[str, Any]:
    text = dump.text()
    if not text:
        return {"error": f"no Python stack: it did not answer within {1000 * ANSWER_SECONDS:.0f} ms"}
    if not text.endswith((_OUTERMOST, _DEEPER)):  # another thread's frames would mislead
        return {"error": "no Python stack: its answer does not reach the main thread"}
    return {"stack": list(_main_thread(text.decode("ascii", "replace")))}


def _main_thread(dump: str) -> Iterator[str]:
    """The frames of the last block."""
    lines = dump.splitlines()
    last = max((number for number, line in enumerate(lines) if _THREAD.match(line)), default=-1)
    for line in lines[last + 1 :][:MAX_FRAMES]:
        if frame := _FRAME.fullmatch(line):
            file, number, function = frame.groups()
            where = "/".join((file or "???").rsplit("/", 2)[-2:])
            yield printable(f"{where}:{number} {function}", MAX_FRAME)
