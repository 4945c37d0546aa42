"""The layout check: a trainer answers, refuses, or does not know the question, and is never left running."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from supervisor.worker.check import check
from supervisor.worker.descendants import processes

HELLO = '{"event":"hello","contract":"1","totalSteps":40}'
PHASE = '{"event":"phase","phase":"init"}'
LAYOUTS = [{"racks": r, "nodesPerRack": 1, "ranksPerNode": 2} for r in (2, 1)]


def answer(layout: dict[str, int], fits: bool = True, reason: str = "") -> str:
    return json.dumps({"event": "layout", "layout": layout, "fits": fits, "microbatches": 2, "reason": reason})


def asked(*words: str, deadline: float = 20.0) -> dict[str, Any]:
    trainer = {"module": "tests.worker.fake_trainer", "args": list(words)}
    return check({"trainer": trainer, "layouts": LAYOUTS}, deadline)


def children_left() -> int:
    return sum(1 for process in processes() if process.parent == os.getpid())


@pytest.mark.parametrize(
    ("words", "state", "answers", "code"),
    [
        (("emit", answer(LAYOUTS[0]), "emit", answer(LAYOUTS[1]), "exit", "0"), "answered", 2, 0),
        (("emit", answer(LAYOUTS[0]), "emit", answer(LAYOUTS[1], False, "7"), "exit", "78"), "answered", 2, 78),
        (("print", "no such key", "exit", "78"), "failed", 0, 78),
        (("emit", HELLO, "emit", PHASE, "print", "no such key", "exit", "78"), "failed", 0, 78),
        (("print", "shard 7 is no text", "exit", "65"), "failed", 0, 65),
        (("emit", answer(LAYOUTS[0]), "raise", "half-way"), "failed", 1, 70),
        (("exit", "0"), "not-checked", 0, 0),
        (("raise", "JAX_COORDINATOR_ADDRESS"), "not-checked", 0, 70),
        (("child", "emit", PHASE, "ignore-term", "hang"), "not-checked", 0, None),
    ],
    ids=[
        "fits",
        "one does not fit",
        "bad configuration",
        "bad configuration, late",
        "bad data",
        "half",
        "silent",
        "fails without us",
        "it trains",
    ],
)
def test_what_the_trainer_does_decides_the_state(
    words: tuple[str, ...], state: str, answers: int, code: int | None
) -> None:
    result = asked(*words)
    assert (result["state"], len(result["answers"]), result["exit_code"]) == (state, answers, code)
    assert bool(result["reason"]) == (state != "answered")
    assert children_left() == 0


def test_the_answers_and_the_output_are_kept() -> None:
    result = asked(
        "print", "checking", "emit", answer(LAYOUTS[0]), "emit", answer(LAYOUTS[1], False, "7 rows"), "exit", "78"
    )
    assert result["answers"][1] == {
        "layout": LAYOUTS[1],
        "fits": False,
        "microbatches": 2,
        "memoryBytes": None,
        "reason": "7 rows",
    }
    assert result["output"] == "checking\n"


def test_a_trainer_that_is_silent_is_killed_at_the_deadline_with_its_children() -> None:
    result = asked("child", "ignore-term", "hang", deadline=1.0)
    assert (result["state"], result["exit_code"]) == ("not-checked", None)
    child = int(result["output"].split()[1])
    assert all(process.pid != child for process in processes())


def test_a_module_that_does_not_exist_is_said_in_one_line() -> None:
    result = check({"trainer": {"module": "no_such_trainer"}, "layouts": LAYOUTS})
    assert (result["state"], result["exit_code"]) == ("failed", 78)
    (line,) = result["output"].splitlines()
    assert "there is no module 'no_such_trainer'" in line
    assert len(line) < 300
