"""What `-o yaml` and `-o json` print can be read again, by us and by YAML's other readers."""

from __future__ import annotations

import json
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from supervisor.api.dump import to_data, to_json, to_yaml
from supervisor.api.load import parse_text
from supervisor.api.status import Status
from tests.api.manifests import run_with
from tests.golden_file import assert_golden

# Printable characters of every plane, and the texts that YAML readers fight over.
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20),
    st.sampled_from(
        ["on", "No", "y", "1:30", "010", "0x1F", "1e3", "null", "~", "", "true", "5.", ".inf", "2027-03-15"]
    ),
    st.sampled_from(
        ["<<", "=", "- a", "a: b", "#", "*a", "&a", "!x", "%", "@", "`", "'", '"', " a", "a ", "a\nb", "\t"]
    ),
)
NUMBERS = st.one_of(st.none(), st.floats(-1e30, 1e30), st.sampled_from([1e-5, 3.0, 1e22]))


@given(args=st.lists(TEXTS, max_size=5), value=TEXTS, loss=NUMBERS)
def test_every_run_is_read_back_as_printed(args: list[str], value: str, loss: float | None) -> None:
    trainer = {"module": "a.b", "args": args, "env": [{"name": "A", "value": value}]}
    run = run_with(trainer=trainer).model_copy(update={"status": Status(loss=loss, phase="Running")})
    assert parse_text(to_yaml(run)) == run
    assert parse_text(to_json(run)) == run


@given(args=st.lists(TEXTS, max_size=5))
def test_a_yaml_1_1_reader_reads_the_same_text(args: list[str]) -> None:
    printed = to_yaml(run_with(trainer={"command": ["x"], "args": args}))
    assert yaml.safe_load(printed)["spec"]["trainer"]["args"] == args


def everything() -> dict[str, Any]:
    return {
        "fleet": {"nodeSelector": {"gpu": "GB200"}, "rackLabel": "example.com/rack", "gpusPerNode": 4},
        "layout": {"racks": 11, "minRacks": 8, "nodesPerRack": 16, "ranksPerNode": 4, "spares": {"mode": "None"}},
        "trainer": {"module": "training.train", "args": ["--on", "on"], "preload": ["jax"], "env": [{"name": "A"}]},
        "recovery": {"startupDeadline": "90m"},
        "schedule": {"tokenBudget": 18_000_000_000_000, "deadline": "2027-03-15T00:00:00Z", "plannedMFU": 0.2},
        "requests": [{"id": "a1", "checkpointNow": {}}, {"id": "a2", "resume": {"fromStep": 5}}],
    }


def test_yaml_shows_every_default_and_nothing_empty_that_the_server_would_set() -> None:
    status = Status(
        phase="Held", reason="NoProgress", message="3 attempts reached no newer checkpoint", loss=1e-05, attempt=4
    )
    assert_golden("api/dump.yaml", to_yaml(run_with(**everything()).model_copy(update={"status": status})))


def test_json_holds_the_same_data() -> None:
    run = run_with(**everything())
    assert json.loads(to_json(run)) == to_data(run)
