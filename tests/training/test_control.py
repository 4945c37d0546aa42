"""Faults that the control file asks a rank for, and what it makes of a file that is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from training.control import SLOW_MS_MAX, Control, Requests


def write(path: Path, chaos: Any, save: int = 0, stop: bool = False) -> None:
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"version": 1, "save": save, "stop": stop, "fail": 0, "chaos": chaos}))
    new.replace(path)


@pytest.mark.parametrize("kind", ["hang", "spin"])
def test_a_fault_happens_once_for_each_higher_number(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "control"
    control = Control(path)
    asked = Requests(**{kind: True})
    write(path, {kind: 1})
    assert [control.read(), control.read()] == [asked, Requests()]
    write(path, {kind: 1, "slowMs": 0})
    assert control.read() == Requests(), "a file that is new, but asks nothing new"
    write(path, {kind: 3})
    assert control.read() == asked
    write(path, {kind: 2})
    assert control.read() == Requests(), "numbers only grow"


@pytest.mark.parametrize("kind", ["hang", "spin"])
def test_a_fault_asked_for_before_the_attempt_began_does_not_happen_again(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "control"
    write(path, {kind: 2}, save=1)
    control = Control(path)
    assert control.read() == Requests(save=True), "the save is due as ever"
    write(path, {kind: 3}, save=1)
    assert control.read() == Requests(**{kind: True})


def test_slowness_lasts_until_it_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "control"
    write(path, {"slowMs": 250})
    control = Control(path)
    assert [control.read().slow_seconds for _ in range(3)] == [0.25] * 3
    write(path, {"slowMs": 0})
    assert control.read().slow_seconds == 0.0
    write(path, {"slowMs": 40})
    assert control.read().slow_seconds == 0.04
    write(path, {})
    assert control.read().slow_seconds == 0.0


def test_a_fault_of_a_kind_that_the_trainer_does_not_know_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "control"
    control = Control(path)
    write(path, {"melt": 1, "spin": 1})
    assert control.read() == Requests(spin=True)


@pytest.mark.parametrize(
    "chaos",
    [[], "hang", {"hang": -1}, {"hang": True}, {"spin": "1"}, {"spin": 1.5}, {"slowMs": SLOW_MS_MAX + 1}],
    ids=str,
)
def test_faults_that_make_no_sense_are_reported_and_nothing_happens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], chaos: Any
) -> None:
    path = tmp_path / "control"
    control = Control(path)
    write(path, chaos, save=1)
    assert control.read() == Requests()
    assert "chaos" in capsys.readouterr().err
    write(path, {"hang": 1}, save=1)
    assert control.read() == Requests(save=True, hang=True), "the next good file is obeyed"
