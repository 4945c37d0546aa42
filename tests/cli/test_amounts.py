"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest

from supervisor.cli import amounts, table
from supervisor.cli.run_state import read_run
from supervisor.cli.status_table import HEADERS, fitted_table
from tests.cli import told_runs


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (math.nan, "-"), (math.inf, "-"), (0, "0"), (7, "7"), (0.25, "0.25"), (999, "999"), (999.6, "1k"),
     (1234, "1.23k"), (999_600, "1M"), (169_984, "170k"), (18e12, "18T"), (5e15, "5000T")],
)  # fmt: skip
def test_counts(value: float | None, text: str) -> None:
    assert amounts.count(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (0, "0%"), (0.004, "0.4%"), (0.25, "25%"), (1, "100%"), (math.nan, "-")]
)
def test_shares(value: float | None, text: str) -> None:
    assert amounts.share(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0s"), (0, "0s"), (59, "59s"), (125, "2m5s"), (3600, "1h"), (3605, "1h"), (5400, "1h30m"), (273_700, "3d4h")],
)
def test_spans_have_two_units_at_most(seconds: float, text: str) -> None:
    assert amounts.span(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0s"), (119, "119s"), (125, "2m5s"), (599, "9m59s"), (616, "10m"), (10_799, "179m"), (12_600, "3h30m"),
     (100_000, "27h"), (273_700, "3d4h"), (8_000_000, "92d")],
)  # fmt: skip
def test_ages_are_those_of_kubectl(seconds: float, text: str) -> None:
    assert amounts.age(seconds) == text


def test_a_table_leaves_out_columns_on_a_narrow_terminal_and_keeps_the_rest(tmp_path: told_runs.Path) -> None:
    directory = told_runs.write_run(tmp_path, told_runs.memory(), name="hero-535b-a23b-autumn")
    states = [read_run(directory)]
    assert fitted_table(states, 200)[0].split() == list(HEADERS)
    narrow = fitted_table(states, 80)
    assert max(map(len, narrow)) <= 80
    assert {"NAME", "PHASE", "STEP", "LOSS", "RACKS", "INCIDENTS"} <= set(narrow[0].split())


def test_a_cell_from_outside_cannot_break_its_table() -> None:
    lines = table.table(["A", "B"], [["x\ny\x1b[2J", "1"], ["z", "22"]], right=["B"])
    assert lines == ["A" + " " * 15 + "B", "x\\x0ay\\x1b[2J   1", "z" + " " * 14 + "22"]
