"""The trainer as real processes under the contract: two ranks in one rack, one run of several attempts."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.training.gang_of_ranks import Attempt, attempt

pytestmark = pytest.mark.xdist_group("trainer-gang")  # its tests share one run
STEPS = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gang")


@pytest.fixture(scope="module")
def unbroken(folder: Path) -> Iterator[Attempt]:
    """Attempt 1 runs from the first step to the last, as the plan's token budget says."""
    with attempt(folder, 1, ranks=2, plan={"tokenBudget": STEPS * 256 + 255, "checkpointEverySteps": 4}) as first:
        assert first.exit_codes() == [0, 0], first.output()
        yield first


def test_an_unbroken_run_keeps_the_contract(unbroken: Attempt) -> None:
    hello = unbroken.events(kind="hello")[0]
    assert (hello["tokensPerStep"], hello["devices"], hello["totalSteps"]) == (256, 2, STEPS)
    assert hello["peakFlopsPerDevice"] is None
    for rank in (0, 1):
        phases = [e["phase"] for e in unbroken.events(rank, "phase")]
        assert phases[:4] == ["import", "init", "compile", "train"]
        assert phases[-1] == "exit"
        assert sorted(unbroken.losses(rank)) == list(range(1, STEPS + 1))
    assert unbroken.losses(0) == unbroken.losses(1)
    assert unbroken.losses()[STEPS] < unbroken.losses()[1] - 1.0, "it learns"
    assert unbroken.committed() == [4, 8, 12]
    assert [e["step"] for e in unbroken.events(kind="eval")] == [STEPS]


def test_each_sample_is_used_once(unbroken: Attempt) -> None:
    seen = [(m["sampleFirst"], m["sampleCount"]) for _, m in sorted(unbroken.metrics().items())]
    assert seen == [(step * 8, 8) for step in range(STEPS)]
    assert len({m["batchHash"] for m in unbroken.metrics().values()}) == STEPS, "no two batches are the same"
    assert all(m["droppedAssignments"] == 0 for m in unbroken.metrics().values()), "tiny has ample capacity"


def test_a_resumed_run_is_bitwise_the_unbroken_one(folder: Path, unbroken: Attempt) -> None:
    plan = {"tokenBudget": STEPS * 256}
    with attempt(folder, 2, ranks=2, resume="1:4", plan=plan) as resumed:
        assert resumed.exit_codes() == [0, 0], resumed.output()
    assert resumed.losses() == {step: loss for step, loss in unbroken.losses().items() if step > 4}
    assert [m["batchHash"] for m in resumed.metrics().values()] == [
        m["batchHash"] for step, m in unbroken.metrics().items() if step > 4
    ]
    assert resumed.events(kind="eval")[-1]["loss"] == unbroken.events(kind="eval")[-1]["loss"]
    assert "restore" in [e["phase"] for e in resumed.events(kind="phase")]


def test_on_fewer_racks_the_first_steps_agree_and_the_batches_are_the_same(folder: Path, unbroken: Attempt) -> None:
    """Here: from one rack of two to one rank alone, which also restores every expert from two shards."""
    plan = {"tokenBudget": STEPS * 256, "checkpointEverySteps": 10**6, "checkpointEverySeconds": 1e-9}
    with attempt(folder, 3, resume="1:4", plan=plan) as alone:
        assert alone.exit_codes() == [0], alone.output()
    for step, loss in alone.losses().items():
        assert loss == pytest.approx(unbroken.losses()[step], abs=1e-5)
        assert alone.metrics()[step]["batchHash"] == unbroken.metrics()[step]["batchHash"]
    assert alone.committed() == list(range(5, STEPS + 1)), "rank 0's clock asked after every step"


def test_save_and_stop_reach_all_ranks_through_rank_0(folder: Path) -> None:
    plan = {"tokenBudget": 10**9, "checkpointEverySteps": 10**6}
    with attempt(folder, 4, ranks=2, plan=plan) as asked:
        asked.wait_until(lambda: len(asked.losses()) >= 2, "two steps")
        asked.control(0, save=1)
        asked.wait_until(lambda: len(asked.committed()) == 1, "the save that was asked for")
        asked.control(0, save=1, stop=True)
        assert asked.exit_codes() == [75, 75], asked.output()
        last = max(asked.losses())
        assert asked.committed()[-1] == last, "it saves what is unsaved before it stops"
        assert len(asked.committed()) == 2, "one number asks once"
        for rank in (0, 1):
            assert asked.events(rank)[-1] | {"time": 0} == {
                "time": 0,
                "event": "phase",
                "phase": "exit",
                "reason": "stopped as asked",
            }


def test_a_rank_told_to_fail_exits_70_and_its_peer_asks_for_a_restart(folder: Path) -> None:
    with attempt(folder, 5, ranks=2, plan={"tokenBudget": 10**9}) as failing:
        failing.wait_until(lambda: failing.losses(), "a step")
        failing.control(1, fail=1)
        peer, failed = failing.exit_codes()
        assert failed == 70
        assert "failed as asked" in failing.output(1)
        assert "Traceback" in failing.output(1)
        # JAX's coordination service may abort the process before our own answer is out.
        assert peer in (75, -signal.SIGABRT), failing.output(0)
        if peer == 75:
            assert failing.events(0, "alarm")[-1]["kind"] == "peer-failed"


def test_a_loss_that_is_no_number_ends_the_run_unsaved(folder: Path) -> None:
    diverging = ("--set", "optimizer.peak_rate=1.0e+30", "--set", "checkpoint.every_steps=1000")
    with attempt(folder, 6, arguments=diverging) as run:
        assert run.exit_codes() == [70], run.output()
    alarm = run.events(kind="alarm")[0]
    assert alarm["kind"] == "non-finite-loss"
    assert run.events(kind="step")[-1]["loss"] is None
    assert run.committed() == []
    assert "Traceback" not in run.output()
