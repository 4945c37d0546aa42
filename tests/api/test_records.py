"""The core's types on disk: read back equal, and never read back from damage."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.api.records import BadRecord, from_json, to_json
from supervisor.core.actions import Action, StartWorker
from supervisor.core.decision import Decision, Note
from supervisor.core.incident import Incident
from supervisor.core.ledger import Ledger
from supervisor.core.memory import Memory
from supervisor.core.observation import LayoutCheck, Observation, Survey, TaskDone, Worker

# Drawing a whole memory is slow; the profile (short or long) still sets the scale.
FEWER = settings(max_examples=settings().max_examples // 5)
st.register_type_strategy(float, st.floats(allow_nan=False))  # no NaN equals itself, read back or not


def few(cls: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(st.from_type(cls), max_size=2).map(tuple)


MEMORIES = st.from_type(Memory)
DECISIONS = st.builds(Decision, memory=MEMORIES, actions=few(Action), notes=few(Note), incidents=few(Incident))


@FEWER
@given(st.from_type(Observation))
def test_every_observation_is_read_back_equal(observation: Observation) -> None:
    line = to_json(observation)
    assert b"\n" not in line
    assert from_json(Observation, line) == observation


@FEWER
@given(MEMORIES)
def test_every_memory_is_read_back_equal(memory: Memory) -> None:
    assert from_json(Memory, to_json(memory)) == memory


@FEWER
@given(DECISIONS)
def test_every_decision_is_read_back_equal(decision: Decision) -> None:
    assert from_json(Decision, to_json(decision)) == decision


@pytest.mark.parametrize("result", [Survey("t1"), LayoutCheck("t1"), TaskDone("t1", ok=True)], ids=str)
def test_members_of_a_union_stay_what_they_were(result: Survey | LayoutCheck | TaskDone) -> None:
    worker = Worker("r0n0", "s", connected=True, results=(result,))
    (read,) = from_json(Worker, to_json(worker)).results
    assert type(read) is type(result)


def test_a_file_of_an_older_version_lacks_fields_and_is_read() -> None:
    written = json.loads(to_json(Memory(Ledger(0, 0), stalled=2)))
    del written["incidents"]
    assert from_json(Memory, json.dumps(written).encode()).stalled == 2


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "found no single record"),
        (b"{}, {}", "found no single record"),
        (b"[]", "found no single record"),
        (b'{"node": "a"', "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b"{}", "node is missing"),
        (b'{"node": 5}', "node is 5"),
        (b'{"node": null}', "node is nothing (null)"),
        (b'{"node": "a", "rack": "b"}', "rack is unknown"),
    ],
)
def test_a_damaged_record_is_refused_with_what_was_found(content: bytes, sentence: str) -> None:
    with pytest.raises(BadRecord) as refused:
        from_json(StartWorker, content)
    assert str(refused.value).startswith("not a StartWorker: ")
    assert sentence in str(refused.value)


def test_a_record_cut_anywhere_is_refused() -> None:
    whole = to_json(Memory(Ledger(0, 0)))
    for length in range(len(whole)):
        with pytest.raises(BadRecord):
            from_json(Memory, whole[:length])


def test_a_record_full_of_mistakes_is_told_in_one_bounded_line() -> None:
    workers = [{"node": "\x1b[31m" * 100, "session": i} for i in range(1000)]
    with pytest.raises(BadRecord) as refused:
        from_json(Observation, json.dumps({"workers": workers}).encode())
    assert "and 1995 more" in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1000


@dataclass(frozen=True, slots=True)
class Left:
    name: str


@dataclass(frozen=True, slots=True)
class Right:
    name: str


@dataclass(frozen=True, slots=True)
class Either:
    sides: tuple[Left | Right, ...] = ()


def test_a_union_that_json_cannot_tell_apart_is_refused_before_anything_is_written() -> None:
    with pytest.raises(TypeError, match="have the same fields"):
        to_json(Either((Right("x"),)))


@dataclass(frozen=True, slots=True)
class Measured:
    value: float


@pytest.mark.parametrize("value", [0.1, -0.0, 1e300, float("inf"), float("-inf"), 5.0])
def test_every_float_is_read_back_the_same(value: float) -> None:
    assert repr(from_json(Measured, to_json(Measured(value))).value) == repr(value)
