"""The rank's side of a look at its Python stacks: a handler that writes them to a file, even inside C code."""

from __future__ import annotations

import faulthandler
import os
import signal

from supervisor.wire.contract import RankPaths

STACKS_SIGNAL = signal.SIGUSR1


def write_stacks_when_asked(paths: RankPaths) -> None:
    """Append every thread's frames to `paths.stacks` at each STACKS_SIGNAL. Raises OSError.

    faulthandler's handler runs in C, so it needs neither the interpreter's lock nor that a call returns.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(paths.stacks, flags, 0o600)  # open as long as the process lives
    faulthandler.register(STACKS_SIGNAL, file=descriptor, all_threads=True, chain=False)
