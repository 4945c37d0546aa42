"""What we give a trainer and take from it fits the published schema, checked by an independent validator."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.wire.codec import Malformed, decode, encode
from supervisor.wire.contract import RankPaths, control_object, layout_object, rank_environment
from supervisor.wire.events import MAX_LINE_BYTES, Rejected, parse_event
from supervisor.wire.messages import (
    CheckpointRef,
    Control,
    GangOrder,
    LayoutShape,
    Order,
    RankAssignment,
    TrainerCommand,
)

SCHEMA = json.loads((Path(__file__).parents[2] / "supervisor/wire/schema/trainer-v1.json").read_text())
PATHS = RankPaths(Path("/w/a0001/rank-0003"))
ORDER = GangOrder(
    kind="training",
    number=12,
    command="run",
    ranks=(RankAssignment(3, 1, 1),),
    world_size=4,
    coordinator="[::1]:4711",
    layout=LayoutShape(2, 1, 2),
    trainer=TrainerCommand(module="m", environment={"A": "b"}),
    checkpoints="/ckpt",
    cache="/cache",
    resume=CheckpointRef(11, 0),
    control=Control(save=2, fail=((3, 1), (2, 9), (3, 4)), chaos=((2, "hang", 1), (3, "slowMs", 250), (3, "x", 1))),
)


def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]})


def test_the_schema_itself_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("resume", [None, CheckpointRef(11, 0)])
def test_a_ranks_environment_fits_the_schema(resume: CheckpointRef | None) -> None:
    environment = rank_environment(dataclasses.replace(ORDER, resume=resume), ORDER.ranks[0], PATHS)
    validator("environment").validate(environment)
    assert set(environment) == set(SCHEMA["$defs"]["environment"]["properties"])
    validator("layout").validate(json.loads(environment["MARIN_SUP_LAYOUT"]))
    assert environment["MARIN_SUP_PROCESS_ID"] == "3"
    assert environment["MARIN_SUP_RACK"] == environment["JAX_PARTITION_INDEX"] == "1"


def test_a_control_file_holds_the_ranks_own_fault_alone() -> None:
    found = control_object(ORDER.control, 3)
    validator("control").validate(found)
    assert found == {"version": 1, "save": 2, "stop": False, "fail": 4, "chaos": {"slowMs": 250}}
    assert control_object(ORDER.control, 2)["chaos"] == {"hang": 1}
    unharmed = control_object(ORDER.control, 0)
    validator("control").validate(unharmed)
    assert unharmed["fail"] == 0
    assert "chaos" not in unharmed
    assert layout_object(ORDER.layout) == {"racks": 2, "nodesPerRack": 1, "ranksPerNode": 2}


def test_an_order_survives_its_journey() -> None:
    order = Order(7, "k", (ORDER,))
    assert decode(Order, json.loads(json.dumps(encode(order)))) == order


def test_an_environment_that_is_not_text_is_refused_with_its_path() -> None:
    data = encode(Order(7, "k", (ORDER,)))
    data["gangs"][0]["trainer"]["environment"]["A"] = 1
    with pytest.raises(Malformed, match=r"gangs\[0\].trainer.environment.A: found a number"):
        decode(Order, data)


HELLO = {
    "event": "hello",
    "contract": 1,
    "tokensPerStep": 1,
    "flopsPerStep": 0,
    "peakFlopsPerDevice": None,
    "devices": 1,
    "parameters": 0,
}
LAYOUT = {"racks": 1, "nodesPerRack": 1, "ranksPerNode": 1}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (HELLO, HELLO),
        ({**HELLO, "totalSteps": None, "peakFlopsPerDevice": 1e12, "peakIsMeasured": True, "later": 1}, None),
        ({"event": "phase", "phase": "restore", "reason": "a\u001b[31m\nb"}, {"reason": "a\\x1b[31m\\x0ab"}),
        ({"event": "phase", "phase": "init", "reason": "x" * 5000}, {"reason": "x" * 999 + "…"}),
        ({"event": "step", "step": 1, "state": "completed", "loss": math.nan}, {"loss": None}),
        ({"event": "step", "step": 1, "state": "entered", "metrics": {"a": math.inf, "b": 1.5}}, None),
        ({"event": "step", "step": 1, "state": "entered", "time": math.inf}, {"event": "step"}),
        ({"event": "step", "step": 1, "state": "completed", "ownSeconds": 0.25}, {"ownSeconds": 0.25}),
        ({"event": "progress", "phase": "restore", "bytes": 1 << 40}, {"bytes": 1 << 40}),
        ({"event": "eval", "step": 0, "loss": -math.inf}, {"loss": None}),
        ({"event": "checkpoint", "state": "committed", "attempt": 1, "step": 0, "bytes": 5}, {"bytes": 5}),
        ({"event": "alarm", "kind": "data", "message": "\ud800"}, {"message": "\\ud800"}),
        ({"event": "layout", "layout": LAYOUT, "fits": False, "reason": "", "memoryBytes": None}, {"fits": False}),
    ],
)
def test_a_good_event_is_kept_and_fits_the_schema(sent: dict[str, Any], kept: dict[str, Any] | None) -> None:
    event = parse_event(json.dumps(sent).encode())
    assert not isinstance(event, Rejected), event
    validator("event").validate(event)
    assert (kept or {}).items() <= event.items()
    assert "later" not in event


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b'{"event": "nope"}',
        b'{"event": ["step"]}',
        b'{"event":"step","step":0,"state":"completed"}',
        b'{"event":"step","step":true,"state":"completed"}',
        b'{"event":"step","step":1.5,"state":"completed"}',
        b'{"event":"step","step":1,"state":"done"}',
        b'{"event":"step","step":1,"state":"entered","loss":"2"}',
        b'{"event":"step","step":' + b"9" * 30 + b',"state":"entered"}',
        b'{"event":"step","step":' + b"9" * 9000 + b',"state":"entered"}',
        json.dumps(
            {"event": "step", "step": 1, "state": "entered", "metrics": {str(i): i for i in range(65)}}
        ).encode(),
        json.dumps({**HELLO, "flopsPerStep": math.nan}).encode(),
        json.dumps({**HELLO, "contract": 2}).encode(),
        json.dumps({**HELLO, "peakFlopsPerDevice": 0}).encode(),
        json.dumps({"event": "layout", "layout": {**LAYOUT, "more": 1}, "fits": True, "reason": ""}).encode(),
        b'{"event":"phase","phase":"lunch"}',
        b'{"event":"progress","phase":"train","bytes":1}',
        b'{"event":"progress","phase":"save","bytes":-1}',
        b'{"event":"step","step":1,"state":"completed","ownSeconds":-0.1}',
        b'{"event":"alarm","kind":"data"}',
        b"[" * 16_000,
        b'{"event":"phase","phase":"init","reason":"' + b"x" * MAX_LINE_BYTES + b'"}',
    ],
)
def test_a_bad_event_is_rejected_with_a_short_printable_reason(line: bytes) -> None:
    rejected = parse_event(line)
    assert isinstance(rejected, Rejected)
    assert 0 < len(rejected.reason) < 400
    assert rejected.reason.isprintable()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
NAMES = st.sampled_from(["hello", "phase", "step", "eval", "checkpoint", "alarm", "layout"])
MEMBERS = sorted({m for branch in SCHEMA["$defs"]["event"]["oneOf"] for m in branch["properties"]} - {"event"})


@given(NAMES, st.dictionaries(st.sampled_from([*MEMBERS, "time"]), JSON), st.booleans())
def test_whatever_is_accepted_fits_the_schema(name: str, members: dict[str, Any], plausible: bool) -> None:
    base: dict[str, Any] = {**HELLO, "phase": "train", "step": 1, "state": "completed", "kind": "data", "message": ""}
    base |= {"attempt": 1, "loss": 1.0, "layout": LAYOUT, "fits": True, "reason": ""}
    event = parse_event(json.dumps({**(base if plausible else {}), **members, "event": name}).encode())
    if not isinstance(event, Rejected):
        validator("event").validate(event)
        json.dumps(event, allow_nan=False).encode("utf-8")


@given(st.binary(max_size=200))
def test_no_bytes_whatever_make_the_parser_raise(line: bytes) -> None:
    assert isinstance(parse_event(line), Rejected | dict)
