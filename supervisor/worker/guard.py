"""The worker's outermost process: it starts the agent and, however that ends, sees that nothing is left behind.

    guard (subreaper; small, has no threads)
      agent (session of its own; sent ORPHANED when the guard dies; subreaper)
        ranks and tasks (sessions of their own; KILLed when the agent dies)

KILL the guard: the agent kills its descendants and ends. KILL the agent: its children die, and the guard kills what
they leave. Killing the guard's process group reaches the guard alone, and so takes the first way.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from supervisor.worker.descendants import become_subreaper, kill_all_children, set_death_signal

ORPHANED = signal.SIGUSR1  # to the agent, from the kernel: the guard is gone
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SWEEP_SECONDS = 10.0


def guarded(agent: Callable[[], int]) -> int:
    """Run `agent` in a child. Returns its exit code, 128 + N if signal N ended it, once no descendant is left."""
    become_subreaper()
    guard = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _be_the_agent(guard, agent)
    for number in _FORWARDED:
        signal.signal(number, lambda received, frame: _forward(child, received))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    status = _wait_for(child)
    if not kill_all_children(_SWEEP_SECONDS):
        print("worker: some processes cannot be killed (uninterruptible); the node needs attention", file=sys.stderr)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _be_the_agent(guard: int, agent: Callable[[], int]) -> None:
    """Never returns: the child must not run the guard's code."""
    code = 70
    try:
        os.setsid()
        set_death_signal(ORPHANED)
        if os.getppid() != guard:
            os._exit(128 + ORPHANED)  # it died before the death signal was set
        become_subreaper()
        code = agent()
    except BaseException as error:  # noqa: BLE001 (said, and then the process ends)
        sys.excepthook(type(error), error, error.__traceback__)
        if isinstance(error, SystemExit) and isinstance(error.code, int):
            code = error.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _forward(child: int, number: int) -> None:
    os.kill(child, number)  # not reaped before _wait_for returns, so never another process's id


def _wait_for(child: int) -> int:
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            for number in _FORWARDED:
                signal.signal(number, signal.SIG_IGN)  # from here on nobody is there to forward to
            return status
