"""A trainer that knows nothing of ours but the contract is supervised as well as our own."""

from __future__ import annotations

from pathlib import Path

from tests.local.run_process import ONE_THREAD, environment, manifest, running

STEPS = 40


def test_a_trainer_of_somebody_else_is_supervised_through_a_kill(tmp_path: Path) -> None:
    trainer = {"module": "tests.local.second_trainer", "args": [str(STEPS)], "env": environment(ONE_THREAD)}
    description = manifest("second", racks=2, nodes=1, ranks=1, spares=0, trainer=trainer)
    with running(tmp_path, description, "--chaos", "kill-rank 1 @step 12") as run:
        assert run.wait(120) == 0, run.story()
        (incident,) = run.incidents()
        losses = run.losses()
        assert "LayoutsNotChecked" in run.reasons()
    assert incident["outcome"] == "recovered"
    assert incident["rung"] == "RestartInPlace"
    assert incident["resumed_from"] is not None, "it went on from its own checkpoint"
    assert sorted(losses) == list(range(1, STEPS + 1))
    assert losses[STEPS] < losses[1] / 10
