"""No process outlives its worker, whichever of the worker's processes ends and however."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.worker.bench import NODE, Bench, agent_of, alive, eventually, gang, marked, trainer

TRAIN = '{"event":"phase","phase":"train"}'


def busy_node(bench: Bench, grace_ms: int = 300) -> tuple[int, list[int]]:
    """(the guard's id, every process below the agent): two ranks, each with a child and an escaped one."""
    guard = bench.worker()
    words = trainer("ignore-term", "child", "escape", "emit", TRAIN, "hang")
    bench.order(gang(1, words, (0, 1), grace_ms=grace_ms))
    bench.until_running(0)
    bench.until_running(1)
    below = marked(bench.workdir)
    assert len(below) == 6, "two ranks, four children"
    return guard.pid, below


def guard_killed(guard: int) -> None:
    os.kill(guard, signal.SIGKILL)


def guards_group_killed(guard: int) -> None:
    os.killpg(guard, signal.SIGKILL)


def agent_killed(guard: int) -> None:
    os.kill(agent_of(guard), signal.SIGKILL)


def worker_told_to_stop(guard: int) -> None:
    os.kill(guard, signal.SIGTERM)


def worker_interrupted_twice(guard: int) -> None:
    agent = agent_of(guard)
    os.kill(agent, signal.SIGINT)
    os.kill(agent, signal.SIGINT)


@pytest.mark.parametrize(
    "end", [guard_killed, guards_group_killed, agent_killed, worker_told_to_stop, worker_interrupted_twice]
)
def test_nothing_is_left_when_the(bench: Bench, end: object) -> None:
    guard, below = busy_node(bench)
    agent = agent_of(guard)
    end(guard)  # type: ignore[operator]
    eventually(lambda: not any(alive(pid) for pid in (*below, agent)), f"all dead after {end}")
    eventually(lambda: not bench.hub.connected(NODE), "the hub sees the connections gone")


def test_a_killed_worker_is_noticed_within_moments_though_its_poll_was_waiting(bench: Bench) -> None:
    worker = bench.worker()
    killed = time.monotonic()
    worker.kill()
    eventually(lambda: not bench.hub.connected(NODE), "the connection lost", seconds=5)
    at, ring = bench.rings.get(timeout=5)
    while ring.reason != "connection lost":
        at, ring = bench.rings.get(timeout=5)
    assert ring.urgent
    print(f"SIGKILL of the worker to the doorbell: {1000 * (at - killed):.1f} ms")


def test_a_rank_dies_with_the_thread_that_spawned_it_even_when_it_was_only_just_started(bench: Bench) -> None:
    guard = bench.worker()
    agent = agent_of(guard.pid)
    bench.order(gang(1, trainer("hang")))
    pid = eventually(lambda: bench.rank() and bench.rank().pid, "a process id, long before the first event")
    os.kill(agent, signal.SIGKILL)
    eventually(lambda: not alive(pid), "the rank dead")
    assert guard.wait(10) == 128 + signal.SIGKILL


def test_the_order_to_leave_stops_everything_and_ends_the_worker_well(bench: Bench) -> None:
    worker = bench.worker()
    bench.order(gang(1, trainer("emit", TRAIN, "hang")))
    bench.until_running()
    bench.order(leave=True)
    assert worker.wait(10) == 0
    assert bench.rank().exit.by_us, "the last report told how the rank ended"


def test_a_second_worker_in_the_same_directory_waits_and_clears_what_the_first_left(bench: Bench) -> None:
    guard, below = busy_node(bench)
    agent = agent_of(guard)
    # both at once, as a machine out of memory may: nobody is left to clean up but the next worker
    os.kill(agent, signal.SIGSTOP)
    os.kill(guard, signal.SIGKILL)
    os.kill(agent, signal.SIGKILL)
    bench.worker()
    eventually(lambda: not any(alive(pid) for pid in below), "the first worker's processes dead")
