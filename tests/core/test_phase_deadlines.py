"""Deadlines that the run itself teaches, over step series that were recorded or drawn."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.core.deadlines import KEPT, confirm_ms, deadline_ms, learned
from supervisor.core.memory import Shown
from supervisor.core.spec import Deadlines, Limits

LIMITS = Deadlines()


def taught(phase: str, *silences: int) -> tuple[Shown, ...]:
    shown: tuple[Shown, ...] = ()
    for silence in silences:
        shown = learned(shown, phase, silence)
    return shown


def test_before_anything_is_learned_the_ceiling_is_in_force() -> None:
    assert deadline_ms("step", (), LIMITS) == 15 * 60_000
    assert deadline_ms("step", taught("step", 100, 100), LIMITS) == 15 * 60_000
    assert deadline_ms("restore", (), LIMITS) == 30 * 60_000


def test_short_steps_are_suspected_at_the_floor() -> None:
    assert deadline_ms("step", taught("step", *[110] * 30), LIMITS) == 2_000


def test_the_steps_of_the_535b_run_are_suspected_after_a_good_minute() -> None:
    """Median 16.87 s, 20.58 s while a save runs (marin issue 9180); its own watchdog waits 15 minutes."""
    shown = taught("step", *([16_870] * 14 + [20_580] * 2) * 3)
    assert 60_000 < deadline_ms("step", shown, LIMITS) < 90_000
    assert confirm_ms("step", shown, LIMITS) < 300_000


def test_a_long_step_that_was_none_of_a_hang_teaches_patience_and_is_forgotten_later() -> None:
    shown = taught("step", *[1_000] * 20, 9_000)
    assert deadline_ms("step", shown, LIMITS) == 13_500
    assert deadline_ms("step", taught("step", 9_000, *[1_000] * KEPT), LIMITS) == 4_000


def test_a_slow_restore_teaches_the_next_one() -> None:
    assert deadline_ms("restore", taught("restore", 240_000), LIMITS) == 720_000
    assert deadline_ms("restore", taught("restore", 10), LIMITS) == 60_000


def test_limits_of_the_spec_come_before_what_was_learned() -> None:
    strict = Deadlines(step=Limits(500, 3_000))
    assert deadline_ms("step", taught("step", *[100] * 10), strict) == 500
    assert deadline_ms("step", taught("step", *[10_000] * 10), strict) == 3_000


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("typical_ms", [120, 1_000, 17_000])
def test_an_hour_of_heavy_tailed_steps_is_never_taken_for_a_hang(seed: int, typical_ms: int) -> None:
    """Lognormal steps (sigma 0.3), one in a hundred five times as long."""
    draw = random.Random(f"{seed}-{typical_ms}")
    shown: tuple[Shown, ...] = ()
    elapsed = suspected = 0
    while elapsed < 3_600_000:
        silence = round(typical_ms * draw.lognormvariate(0, 0.3) * (5 if draw.random() < 0.01 else 1))
        assert silence < confirm_ms("step", shown, LIMITS), "a false hang"
        suspected += silence >= deadline_ms("step", shown, LIMITS)
        shown = learned(shown, "step", silence)
        elapsed += silence
    assert suspected <= elapsed / 3_600_000 * 20


@given(st.lists(st.integers(0, 10**7), max_size=80), st.sampled_from(["step", "restore", "save", "", "exit"]))
def test_a_deadline_lies_within_its_limits_and_confirmation_after_it(silences: list[int], phase: str) -> None:
    shown = taught(phase, *silences)
    deadline = deadline_ms(phase, shown, LIMITS)
    assert 1_000 <= deadline <= 30 * 60_000
    assert confirm_ms(phase, shown, LIMITS) > deadline
    assert all(len(one.silences) <= KEPT for one in shown)
