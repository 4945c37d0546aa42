"""The promise: a run that was killed in any way, any number of times, is the run that was never touched."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from supervisor.local import chaos
from supervisor.local.chaos import ChaosOrder
from supervisor.local.rundir import RunDirectory
from tests.local.killable import STEPS, every_sample_is_used_exactly_once, killable
from tests.local.run_process import RunProcess, running

SEEDS = range(20)
IN_MAKE_TEST = (0, 1, 2)
MOMENTS = ("start", "restore", "step", "save", "recovery")
VICTIMS = ("rank", "rank 0", "node", "rack", "worker", "supervisor", "rank twice")


@dataclass(frozen=True)
class Blow:
    """`moment`: when in a run's life; `step`: not before this one."""

    victim: str
    moment: str
    step: int

    def __str__(self) -> str:
        return f"{self.victim} during {self.moment} after step {self.step}"


def drawn(seed: int) -> tuple[dict, str, list[Blow]]:
    """Layout, fleet and blows of one seed. Three racks for two, so that a lost rack leaves the layout as it is."""
    draw = random.Random(seed)
    steps = sorted(draw.sample(range(5, STEPS - 20, 5), 4))
    victims = [*draw.sample(VICTIMS, 3), "rank"]
    blows = [Blow(victim, draw.choice(MOMENTS), step) for victim, step in zip(victims, steps, strict=True)]
    return killable(), "3x2", blows


@pytest.mark.parametrize(
    "seed", [pytest.param(s, marks=[] if s in IN_MAKE_TEST else [pytest.mark.long]) for s in SEEDS]
)
@pytest.mark.timeout(600)
def test_a_run_killed_at_random_is_bitwise_the_unbroken_one(
    seed: int, unbroken: dict[int, float], tmp_path: Path, record_summary: Callable[..., None]
) -> None:
    description, fleet, blows = drawn(seed)
    with running(tmp_path, description, "--fleet", fleet) as run:
        for blow in blows:
            strike(run, blow)
        code = run.wait(400)
        assert code == 0, run.story()
        incidents = run.incidents()
        record_summary(
            "runs killed at random",
            {
                "seed": seed,
                "blows": "; ".join(map(str, blows)),
                "attempts": len(run.attempts()),
                "incidents": len(incidents),
                "bitwise": run.losses() == unbroken,
            },
        )
        assert run.losses() == unbroken, run.story()
        assert all(i["outcome"] in ("recovered", "superseded") for i in incidents), run.story()
        numbers = [attempt["number"] for attempt in run.attempts()]
        assert numbers == sorted(set(numbers)), "attempt numbers only grow"
        every_sample_is_used_exactly_once(run)


# ---- striking


def strike(run: RunProcess, blow: Blow) -> None:
    run.until(lambda: run.step() >= blow.step or over(run), f"step {blow.step} before {blow}")
    if over(run):
        return
    wait_for_moment(run, blow.moment)
    victim(run, blow.victim)


def over(run: RunProcess) -> bool:
    return "Completed" in run.reasons()


def wait_for_moment(run: RunProcess, moment: str) -> None:
    """`start`, `restore` and `recovery` come with a fault of their own, which makes them happen."""
    if moment == "step":
        return
    if moment == "save":
        seen = len(run.events("checkpoint"))
        run.until(lambda: len(run.events("checkpoint")) > seen or over(run), "a save begins")
        return
    attempts = len(run.attempts())
    kill_rank(run, 1)
    run.until(lambda: len(run.attempts()) > attempts or over(run), "a recovery begins")
    newest = max(attempt["number"] for attempt in run.attempts())
    if moment == "restore":
        run.until(lambda: phase_reached(run, newest, "restore") or over(run), "a restore begins")
    elif moment == "start":
        run.until(lambda: phase_reached(run, newest, "init") or over(run), "ranks start")


def phase_reached(run: RunProcess, attempt: int, phase: str) -> bool:
    return any(e["attempt"] == attempt and e["phase"] == phase for e in run.events("phase"))


def victim(run: RunProcess, name: str) -> None:
    match name:
        case "rank":
            kill_rank(run, 1)
        case "rank 0":
            kill_rank(run, 0)
        case "rank twice":
            attempts = len(run.attempts())
            kill_rank(run, 1)
            run.until(lambda: len(run.attempts()) > attempts or over(run), "the first recovery begins")
            kill_rank(run, 0)
        case "node":
            chaos.send(RunDirectory(run.directory), ChaosOrder("kill-node", placed(run)[0]))
        case "rack":
            chaos.send(RunDirectory(run.directory), ChaosOrder("kill-rack", placed(run)[-1].split("n")[0]))
        case "worker":
            pids = run.worker_pids()
            os.kill(pids[placed(run)[0]], signal.SIGKILL)
        case "supervisor":
            run.kill_supervisor()
            run.start()


def placed(run: RunProcess) -> list[str]:
    return run.attempts()[-1]["nodes"]


def kill_rank(run: RunProcess, rank: int) -> None:
    chaos.send(RunDirectory(run.directory), ChaosOrder("kill-rank", str(rank)))
