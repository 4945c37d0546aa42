"""Durations, budgets and moments: what is read, what is written, what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.api.budget import Budget
from supervisor.api.duration import Duration
from supervisor.api.timestamp import parse_timestamp, timestamp_text


@pytest.mark.parametrize(
    ("text", "milliseconds", "written"),
    [
        ("45m", 2_700_000, "45m"),
        ("1h30m", 5_400_000, "1h30m"),
        ("500ms", 500, "500ms"),
        ("90s", 90_000, "1m30s"),
        ("0s", 0, "0s"),
        ("1h0m1s1ms", 3_601_001, "1h1s1ms"),
        ("99999h", 359_996_400_000, "99999h"),
        ("30m1h", 5_400_000, "1h30m"),
    ],
)
def test_a_duration_means_what_kubernetes_means_by_it(text: str, milliseconds: int, written: str) -> None:
    duration = Duration.parse(text)
    assert duration.milliseconds == milliseconds
    assert str(duration) == written
    assert Duration.parse(written) == duration


@pytest.mark.parametrize(
    "text", ["", "45", "1.5h", "-5s", "5 m", "1d", "1H", "1:30", "5s5s", "100000s", "٣s", "1h30", "s", "5s\n", 45, None]
)
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"not a duration|a unit is named twice"):
        Duration.parse(text)  # type: ignore[arg-type]


@given(st.integers(0, 99_999 * 3_600_000))
def test_every_duration_is_read_back_as_written(milliseconds: int) -> None:
    assert Duration.parse(str(Duration(milliseconds))).milliseconds == milliseconds


def test_a_budget_counts_events_within_a_window() -> None:
    budget = Budget.parse("5/24h")
    assert (budget.count, budget.window.milliseconds) == (5, 86_400_000)
    assert str(budget) == "5/24h"
    assert Budget.parse("0/90m") == Budget(0, Duration.parse("1h30m"))


@pytest.mark.parametrize(
    "text", ["", "5", "5/", "/24h", "5/24", "-1/24h", "5/0s", "5/24h/1", "10000/1h", "1.5/24h", "5 / 24h", 5]
)
def test_what_is_no_budget_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"not a budget|an empty window|not a duration"):
        Budget.parse(text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2027-03-15T00:00:00Z", datetime(2027, 3, 15, tzinfo=UTC)),
        ("2027-03-15T01:30:00.25+01:30", datetime(2027, 3, 15, 0, 0, 0, 250_000, tzinfo=UTC)),
        ("2027-03-15T00:00:00.123456789Z", datetime(2027, 3, 15, 0, 0, 0, 123_456, tzinfo=UTC)),
    ],
)
def test_a_moment_is_read_with_its_offset(text: str, moment: datetime) -> None:
    assert parse_timestamp(text) == moment


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "2027-03-15", "2027-03-15T00:00:00", "2027-02-30T00:00:00Z", "2027-03-15 00:00:00Z", 1]
)
def test_what_is_no_moment_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"not a moment|out of range"):
        parse_timestamp(text)  # type: ignore[arg-type]


@given(st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-7)), timezone(timedelta(minutes=330))])))
def test_every_moment_is_read_back_as_written(moment: datetime) -> None:
    assert parse_timestamp(timestamp_text(moment)) == moment
