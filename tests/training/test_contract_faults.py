"""Faults in a gang of three, own work that names the slow rank, and batches that are passed over: real ranks."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from tests.training.gang_of_ranks import Attempt, attempt
from training.config import load_config
from training.data import open_batches
from training.inbox import checksum_rows

RANKS = (0, 1, 2)
SLOW_MS = 400
STILL_SECONDS = 1.5
PLAN = {"tokenBudget": 10**9, "checkpointEverySteps": 10**6, "skippedBatches": [[2, 3], [4, 1]]}

pytestmark = pytest.mark.xdist_group("trainer-faults")  # its tests share one gang, in this order


@pytest.fixture(scope="module")
def gang(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attempt]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONFAULTHANDLER", "1")
        with attempt(tmp_path_factory.mktemp("faults"), 1, racks=3, plan=PLAN) as started:
            started.wait_until(lambda: len(started.losses()) >= 8, "eight steps")
            yield started


def own_seconds(gang: Attempt, rank: int, first: int) -> list[float]:
    steps = gang.events(rank, "step")
    return [e["ownSeconds"] for e in steps if e["state"] == "completed" and e["step"] >= first]


def last_step(gang: Attempt, rank: int) -> tuple[int, str]:
    event = gang.events(rank, "step")[-1]
    return event["step"], event["state"]


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_the_batches_that_the_plan_passes_over_are_not_read(gang: Attempt) -> None:
    config = load_config("tiny", ())
    rows, size = open_batches((), config.data, config.seed), config.data.global_batch
    metrics = gang.metrics()
    for step, batch in zip(range(1, 8), [0, 1, 5, 6, 8, 9, 10], strict=True):
        ids = range(batch * size, (batch + 1) * size)
        assert metrics[step]["sampleFirst"] == batch * size
        assert metrics[step]["batchHash"] == checksum_rows(ids, rows.train_rows(ids)), f"rows of step {step}"


def test_own_seconds_name_the_slow_rank_while_all_steps_are_slow(gang: Attempt) -> None:
    before = {rank: median(own_seconds(gang, rank, 3)) for rank in RANKS}
    assert all(0 < own < SLOW_MS / 1000 for own in before.values()), before
    first = max(gang.losses()) + 3  # the slowness begins a step or two after the file was written
    gang.control(2, slowMs=SLOW_MS)
    gang.wait_until(lambda: all(len(own_seconds(gang, rank, first)) >= 4 for rank in RANKS), "four slow steps")
    own = {rank: median(own_seconds(gang, rank, first)) for rank in RANKS}
    assert own[2] >= SLOW_MS / 1000
    assert max(own[0], own[1]) < own[2] / 2, own
    slow = [m["stepSeconds"] for step, m in gang.metrics().items() if step >= first]
    assert min(slow) >= 0.9 * SLOW_MS / 1000, "the others waited for it"
    gang.control(2, slowMs=0)
    first = max(gang.losses()) + 3
    gang.wait_until(lambda: len(own_seconds(gang, 2, first)) >= 4, "four steps after it")
    assert median(own_seconds(gang, 2, first)) < SLOW_MS / 1000, "it ends when it is taken back"


def test_a_rank_that_hangs_inside_a_step_leaves_all_ranks_in_that_step(gang: Attempt) -> None:
    gang.control(1, hang=1)
    stands_still(gang)
    step, state = last_step(gang, 1)
    assert state == "entered"
    assert [last_step(gang, rank) for rank in RANKS] == [(step, "entered")] * 3
    assert [process.poll() for process in gang.processes] == [None] * 3, "nobody has left"
    burnt = sum(cpu_seconds(process.pid) for process in gang.processes)
    stands_still(gang)
    assert sum(cpu_seconds(process.pid) for process in gang.processes) < burnt + STILL_SECONDS / 2, "all wait"
    assert "in hang_as_asked" in stack_of(gang, 1)


def test_a_rank_that_spins_never_enters_the_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONFAULTHANDLER", "1")
    with attempt(tmp_path, 1, plan=PLAN) as alone:
        alone.wait_until(lambda: alone.losses(), "a step")
        alone.control(0, spin=1)
        stands_still(alone)
        assert last_step(alone, 0) == (max(alone.losses()), "completed")
        burnt = cpu_seconds(alone.processes[0].pid)
        alone.wait_until(lambda: cpu_seconds(alone.processes[0].pid) > burnt + 0.2, "it burns CPU time")
        assert "in spin_as_asked" in stack_of(alone, 0)


def stands_still(gang: Attempt) -> None:
    """Wait until no rank has said anything for STILL_SECONDS, in which many steps would fit."""
    seen: tuple[list[int], float] = ([], time.monotonic())

    def still() -> bool:
        nonlocal seen
        said = [len(gang.events(rank)) for rank in range(len(gang.processes))]
        if said != seen[0]:
            seen = (said, time.monotonic())
        return time.monotonic() - seen[1] > STILL_SECONDS

    gang.wait_until(still, "no rank says anything")


def stack_of(gang: Attempt, rank: int) -> str:
    """Ends the rank, and returns what Python's fault handler says of it."""
    gang.processes[rank].send_signal(signal.SIGABRT)
    gang.processes[rank].wait(30)
    return gang.output(rank)
