"""Between the wire and the core nothing is lost, and nothing that a worker sends can break the supervisor."""

from __future__ import annotations

from typing import Any

import pytest

from supervisor.core import observation
from supervisor.core.actions import Command, GangIntent, Task, TaskKind, WorkerOrder
from supervisor.core.observation import Checkpoint, RankState, StepState
from supervisor.core.placement import PlacedRank
from supervisor.core.spec import Layout
from supervisor.local.translate import Surroundings, order_for, worker_seen
from supervisor.wire import messages
from supervisor.wire.messages import ExitReport, GangReport, RankReport, Report, TaskResult, TrainerCommand

AROUND = Surroundings(TrainerCommand(module="train", preload=("jax",)), "/ckpt", "/cache", {"version": 1})
NOW = 10_000


def seen(**report: Any) -> observation.Worker:
    return worker_seen("r0n0", "s", True, Report("r0n0", "s", **report), NOW)


def test_an_exit_is_dated_by_the_supervisors_clock() -> None:
    ended = RankReport(3, "exited", entered=8, completed=7, exit=ExitReport(None, 9, False, 250, "x" * 10_000))
    (gang,) = seen(gangs=(GangReport("training", 2, "ended", (ended,)),)).gangs
    (rank,) = gang.ranks
    assert rank.state is RankState.EXITED
    assert rank.exit is not None
    assert (rank.exit.signal, rank.exit.at_ms, rank.completed) == (9, NOW - 250, 7)
    assert len(rank.exit.last_words) <= 600


def test_a_worker_that_refuses_its_share_is_heard() -> None:
    (gang,) = seen(gangs=(GangReport("training", 2, "refused", reason="the disk is full"),)).gangs
    assert "the disk is full" in gang.refused


def test_a_gang_of_another_kind_is_none_of_the_cores_business() -> None:
    assert seen(gangs=(GangReport("burn-in", 2, "running"),)).gangs == ()


def test_a_survey_brings_states_and_parents() -> None:
    steps = [
        {"attempt": 2, "step": 30, "state": "verified", "parent": [1, 20]},
        {"attempt": 2, "step": 40, "state": "damaged", "reason": "cut off", "parent": None},
    ]
    (survey,) = seen(results=(TaskResult("survey-1", "survey", True, {"attempts": [1, 2, 5], "steps": steps}),)).results
    assert isinstance(survey, observation.Survey)
    assert survey.newest_attempt == 5
    assert [(s.state, s.parent) for s in survey.steps] == [
        (StepState.VERIFIED, Checkpoint(1, 20)),
        (StepState.DAMAGED, None),
    ]


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"steps": None, "attempts": "many"},
        {"steps": [None, 7, {}, {"attempt": "1", "step": 2, "state": "verified"}, {"state": "splendid"}]},
        {"steps": [{"attempt": 1, "step": 2, "state": "verified", "parent": ["a", None]}], "attempts": [None]},
    ],
)
def test_a_survey_that_makes_no_sense_is_survived(result: dict[str, Any]) -> None:
    (survey,) = seen(results=(TaskResult("survey-1", "survey", True, result),)).results
    assert isinstance(survey, observation.Survey)
    assert survey.newest_attempt == 0


@pytest.mark.parametrize("result", [{}, {"answers": [{}, {"layout": {"racks": "two"}}, 3]}, {"answers": None}])
def test_a_check_that_makes_no_sense_is_no_answer(result: dict[str, Any]) -> None:
    (check,) = seen(results=(TaskResult("check-1", "check", True, result),)).results
    assert isinstance(check, observation.LayoutCheck)
    assert check.answers == ()


def test_a_task_that_failed_says_why() -> None:
    failed = TaskResult("survey-1", "survey", False, error="Permission denied")
    (survey,) = seen(results=(failed,)).results
    assert isinstance(survey, observation.Survey)
    assert survey.error == "Permission denied"


def test_an_order_carries_what_the_core_decided_and_what_the_run_is_made_of() -> None:
    ranks = (PlacedRank(2, "r1n0", 0, 1),)
    gang = GangIntent(7, Command.RUN, ranks, Layout(2, 2, 1), "127.0.0.1:9", Checkpoint(6, 40), 1, True, 5_000)
    order = order_for(WorkerOrder("a7:run", gang), AROUND, {2: 1, 3: 4})
    (sent,) = order.gangs
    assert order.key == "a7:run"
    assert (sent.number, sent.command, sent.world_size) == (7, "run", 4)
    assert sent.resume == messages.CheckpointRef(6, 40)
    assert sent.control == messages.Control(1, True, ((2, 1),)), "a fault is injected into our own ranks alone"
    assert (sent.checkpoints, sent.trainer, sent.plan) == ("/ckpt", AROUND.trainer, {"version": 1})


def test_a_layout_check_asks_about_each_layout_without_heavy_imports() -> None:
    task = Task("check-1", TaskKind.CHECK, layouts=(Layout(2, 1, 1), Layout(1, 1, 1)))
    (sent,) = order_for(WorkerOrder("standby", None, (task,)), AROUND, {}).tasks
    assert [layout["racks"] for layout in sent.arguments["layouts"]] == [2, 1]
    assert sent.arguments["trainer"]["preload"] == []
