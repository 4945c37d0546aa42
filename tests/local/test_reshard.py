"""A run that goes on with fewer racks: the same data, the same function, losses within the noise of a seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.local.killable import STEPS, every_sample_is_used_exactly_once, killable
from tests.local.run_process import ONE_THREAD, REPOSITORY, running

RECORDED = Path(__file__).with_name("held_out_of_five_seeds.json")
SEEDS = (1, 2, 3, 4, 5)


@pytest.mark.timeout(400)
def test_a_run_resharded_to_one_rack_goes_on_as_if_nothing_had_happened(
    unbroken: dict[int, float], tmp_path: Path
) -> None:
    chaos = "kill-rack r1 @step 40"
    with running(tmp_path, killable(), "--fleet", "2x1", "--chaos", chaos) as run:
        assert run.wait(300) == 0, run.story()
        (incident,) = run.incidents()
        first, last = run.attempts()
        losses, held_out = run.losses(), run.events("eval")[-1]
        every_sample_is_used_exactly_once(run)

    assert (first["layout"], last["layout"]) == ([2, 1, 1], [1, 1, 1])
    assert incident["rung"] == "DropRack"
    assert incident["outcome"] == "recovered"
    resumed = incident["resumed_from"]["step"]
    assert incident["steps_lost"] == incident["step"] - resumed
    after = range(resumed + 1, resumed + 11)
    assert [losses[step] for step in range(1, resumed + 1)] == [unbroken[step] for step in range(1, resumed + 1)]
    assert max(abs(losses[step] - unbroken[step]) for step in after) < 1e-5
    seeds = json.loads(RECORDED.read_text())["losses"].values()
    assert held_out["step"] == STEPS
    assert min(seeds) <= held_out["loss"] <= max(seeds)


@pytest.mark.long
def test_the_recorded_spread_of_five_seeds_is_still_what_five_seeds_give(
    tmp_path: Path, record_summary: Callable[..., None]
) -> None:
    losses = {str(seed): held_out_loss(seed, tmp_path / f"events-{seed}") for seed in SEEDS}
    for seed, loss in losses.items():
        record_summary("held-out loss of five seeds", {"seed": seed, "loss": f"{loss:.4f}"})
    if os.environ.get("UPDATE_GOLDEN"):
        RECORDED.write_text(json.dumps({"config": f"tiny, {STEPS} steps", "losses": losses}, indent=1) + "\n")
    recorded = json.loads(RECORDED.read_text())["losses"]
    assert recorded.keys() == losses.keys()
    assert all(abs(recorded[seed] - losses[seed]) < 0.01 for seed in losses), (recorded, losses)


def held_out_loss(seed: int, events: Path) -> float:
    """Of an unsupervised run on one process."""
    command = [sys.executable, "-m", "training.train", "--config", "tiny"]
    command += ["--set", f"steps={STEPS}", "--set", f"seed={seed}"]
    variables = os.environ | ONE_THREAD | {"MARIN_SUP_EVENTS": str(events)}
    subprocess.run(command, cwd=REPOSITORY, env=variables, check=True, timeout=200, capture_output=True)
    told = [json.loads(line) for line in events.read_text().splitlines()]
    return next(event["loss"] for event in reversed(told) if event["event"] == "eval")
