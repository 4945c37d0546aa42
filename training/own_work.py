"""How long a rank works for itself in a step: it names the slow one among ranks whose steps all take equally long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMPUTES = "tf_XLAEigen"  # the threads in which XLA computes on a CPU (seen with jaxlib 0.10.2)


class OwnWork:
    """Seconds of this rank's own work in one step, without waiting for its peers.

    On a CPU the compiled step computes and waits for peers in one call. Computing burns CPU time and waiting for peers
    does not (10 ms in 2 s, three ranks over gloo), so what counts is the CPU time of the threads of `cpu_clocks`, and
    beside it the time for which the host's own sections (`on_host`) sleep or wait for storage. Not seen: threads that
    are held up because other processes have the core. Not counted: a save that goes on in the background.

    On an accelerator only the host's own sections count: a slow device, or a slow link, is not seen here.
    """

    def __init__(self, clocks: tuple[int, ...]) -> None:
        """`clocks`: those of `cpu_clocks` where the step computes on a CPU, else none."""
        self._clocks = clocks
        self._cpu_began = self._cpu()
        self._seconds = 0.0

    @contextmanager
    def on_host(self) -> Iterator[None]:
        """A section in which this thread waits for no peer and no device."""
        began, cpu_began = time.perf_counter(), time.thread_time()
        yield
        counted_as_cpu = time.thread_time() - cpu_began if self._clocks else 0.0
        self._seconds += time.perf_counter() - began - counted_as_cpu

    def seconds(self) -> float:
        """Since the beginning; to be asked once the step is completed."""
        return max(0.0, self._seconds + self._cpu() - self._cpu_began)

    def _cpu(self) -> float:
        return sum(map(_read, self._clocks))


def cpu_clocks() -> tuple[int, ...]:
    """Clocks of the CPU time of the calling thread and of those in which XLA computes; the whole process' clock where
    there are none by the name that we know. To be asked once the backend runs.
    """
    computing = [int(task.name) for task in Path("/proc/self/task").iterdir() if _name(task) == COMPUTES]
    if not computing:
        return (time.CLOCK_PROCESS_CPUTIME_ID,)
    return tuple(_clock(thread) for thread in (*computing, int(Path("/proc/thread-self").readlink().name)))


def _name(task: Path) -> str:
    try:
        return (task / "comm").read_text().strip()
    except OSError:  # it has ended
        return ""


def _clock(thread: int) -> int:
    """Linux: MAKE_THREAD_CPUCLOCK(thread, CPUCLOCK_SCHED), include/linux/posix-timers_types.h."""
    return (~thread << 3) | 4 | 2


def _read(clock: int) -> float:
    try:
        return time.clock_gettime(clock)
    except OSError:  # the thread has ended
        return 0.0
