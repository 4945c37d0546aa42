"""The resource as the core sees it."""

from __future__ import annotations

from typing import Any

import pytest

from supervisor.api.convert import core_requests, core_spec, fingerprint
from supervisor.core.observation import Ask, Request
from supervisor.core.spec import Budget, Layout, Spec
from tests.api.manifests import run_with

HOUR_MS = 3_600_000


def test_the_documented_defaults_are_those_of_the_core() -> None:
    spec = core_spec(run_with())
    assert spec == Spec("hero", Layout(2, 2, 1), min_racks=2, fingerprint=spec.fingerprint)


def test_every_field_that_the_core_knows_arrives() -> None:
    run = run_with(
        suspend=True,
        layout={"racks": 11, "minRacks": 8, "nodesPerRack": 16, "ranksPerNode": 4},
        trainer={"command": ["train"], "layoutCheck": "Off"},
        checkpoint={"keepNewest": 5, "keepEverySteps": 6000},
        recovery={
            "startupDeadline": "1h30m",
            "workerLost": "500ms",
            "stopGrace": "0s",
            "budgets": {"hardware": "1/1h", "software": "2/2h", "storage": "3/3h", "unknown": "4/4h"},
            "nodeFaults": "5/5h",
            "noProgressLimit": 6,
        },
    )
    spec = core_spec(run)
    assert (spec.name, spec.layout, spec.min_racks) == ("hero", Layout(11, 16, 4), 8)
    assert (spec.suspend, spec.check_layouts) == (True, False)
    assert (spec.keep_newest, spec.keep_every_steps, spec.no_progress_limit) == (5, 6000, 6)
    assert (spec.startup_deadline_ms, spec.worker_lost_ms, spec.stop_grace_ms) == (5_400_000, 500, 0)
    budgets = (
        spec.budgets.hardware,
        spec.budgets.software,
        spec.budgets.storage,
        spec.budgets.unknown,
        spec.node_faults,
    )
    assert budgets == tuple(Budget(count, count * HOUR_MS) for count in (1, 2, 3, 4, 5))


def test_requests_keep_their_ids_and_order() -> None:
    requests = [{"id": "c", "checkpointNow": {}}, {"id": "b", "stop": {}}, {"id": "a", "resume": {}}]
    run = run_with(requests=[*requests, {"id": "d", "resume": {"fromStep": 0}}])
    assert core_requests(run) == (
        Request("c", Ask.CHECKPOINT_NOW),
        Request("b", Ask.STOP),
        Request("a", Ask.RESUME),
        Request("d", Ask.RESUME, 0),
    )


@pytest.mark.parametrize(
    "change",
    [
        {"trainer": {"module": "training.train", "args": ["--big"]}},
        {"trainer": {"module": "training.train", "env": [{"name": "A", "value": "1"}]}},
        {"layout": {"racks": 2, "nodesPerRack": 2, "minRacks": 1}},
        {"layout": {"racks": 2, "nodesPerRack": 1}},
    ],
    ids=str,
)
def test_a_new_trainer_or_layout_is_checked_anew(change: dict[str, Any]) -> None:
    assert fingerprint(run_with(**change)) != fingerprint(run_with())


@pytest.mark.parametrize(
    "change", [{"suspend": True}, {"layout": {"racks": 2, "minRacks": 2, "nodesPerRack": 2, "spares": {"perRack": 1}}}]
)
def test_what_no_layout_depends_on_asks_for_no_new_check(change: dict[str, Any]) -> None:
    assert fingerprint(run_with(**change)) == fingerprint(run_with())
