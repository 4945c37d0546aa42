"""Which batch a step trains on when the plan passes some over."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.config import ConfigError
from training.contract import Plan, read_plan


def plan_of(folder: Path, skipped: Any) -> Plan:
    (folder / "plan").write_text(json.dumps({"version": 1, "skippedBatches": skipped}))
    return read_plan(folder / "plan")


def test_batches_after_a_step_are_passed_over(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, [[2, 3], [4, 0], [5, 1]])
    assert [plan.batch_after(step) for step in range(7)] == [0, 1, 5, 6, 7, 9, 10]


def test_a_plan_without_the_member_passes_nothing_over(tmp_path: Path) -> None:
    (tmp_path / "plan").write_text('{"version": 1}')
    plan = read_plan(tmp_path / "plan")
    assert [plan.batch_after(step) for step in range(4)] == [0, 1, 2, 3]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=8), st.integers(0, 40))
def test_no_batch_is_read_twice_and_as_many_are_passed_over_as_asked(skips: list[tuple[int, int]], last: int) -> None:
    plan = Plan(skipped_batches=tuple(sorted(skips)))
    read = [plan.batch_after(step) for step in range(last + 1)]
    assert all(later > earlier for earlier, later in itertools.pairwise(read))
    passed_over = set(range(read[-1] + 1)) - set(read)
    assert len(passed_over) == sum(count for after, count in skips if after <= last)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=8), st.integers(0, 30), st.integers(0, 9))
def test_passing_more_over_later_leaves_the_steps_before_as_they_were(
    skips: list[tuple[int, int]], after: int, count: int
) -> None:
    before, now = Plan(skipped_batches=tuple(skips)), Plan(skipped_batches=(*skips, (after, count)))
    assert all(before.batch_after(step) == now.batch_after(step) for step in range(after))


@pytest.mark.parametrize(
    ("skipped", "message"),
    [
        (None, "skippedBatches: found 'None', allowed at most 1000 of [afterStep, count]"),
        ({"2": 3}, "allowed at most 1000 of [afterStep, count]"),
        ([[0, 1]] * 1001, "allowed at most 1000 of [afterStep, count]"),
        ([[0, 1], 5], "skippedBatches[1]: found '5', allowed [afterStep, count]"),
        ([[1, 2, 3]], "skippedBatches[0]: found '[1, 2, 3]', allowed [afterStep, count]"),
        ([[1, -2]], "skippedBatches[0][1]: found '-2', allowed an integer of at least 0"),
        ([[True, 2]], "skippedBatches[0][0]: found 'True', allowed an integer of at least 0"),
        ([[5, 1], [4, 1]], "skippedBatches[1]: found step 4 after step 5, allowed ascending by step"),
    ],
    ids=["null", "an object", "too many", "a number", "a triple", "a negative count", "a boolean", "descending"],
)
def test_a_list_that_is_wrong_is_refused_in_one_sentence(tmp_path: Path, skipped: Any, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        plan_of(tmp_path, skipped)
    assert message in str(raised.value)
