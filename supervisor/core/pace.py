"""How fast the run steps: measured over many steps, remembered per number of racks."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from supervisor.core.deadlines import STEP
from supervisor.core.decision import Pass
from supervisor.core.memory import Memory, Pace, Stage

WINDOW = 24  # samples
MIN_SAMPLE_MS = 500  # several short steps make one sample: reports are gathered, and single ones would jitter


def watch_pace(p: Pass) -> Pass:
    """One sample whenever steps were completed since the last, and nothing but steps happened in between."""
    attempt = p.memory.attempt
    if attempt is None or attempt.stage is not Stage.STEPPING:
        return p
    if attempt.watch is None or attempt.watch.phase != STEP:
        return p.with_attempt(attempt, paced=None) if attempt.paced is not None else p
    if attempt.paced is None:
        return p.with_attempt(attempt, paced=(p.now, attempt.completed))
    since_ms, step = attempt.paced
    if attempt.completed <= step or p.now - since_ms < MIN_SAMPLE_MS:
        return p
    sample = (p.now - since_ms) / (attempt.completed - step)
    p = p.with_attempt(attempt, paced=(p.now, attempt.completed))
    return p.remember(paces=_with(p.memory.paces, len(attempt.placement.racks), sample))


def _with(paces: tuple[Pace, ...], racks: int, sample: float) -> tuple[Pace, ...]:
    before = next((pace for pace in paces if pace.racks == racks), Pace(racks))
    recent = (*before.recent, round(sample, 3))[-WINDOW:]
    best = before.best
    if len(recent) == WINDOW:
        now = median(recent)
        best = now if best is None else min(best, now)
    others = tuple(pace for pace in paces if pace.racks != racks)
    return (*others, replace(before, best=best, recent=recent))


def pace_of(memory: Memory, racks: int) -> Pace | None:
    return next((pace for pace in memory.paces if pace.racks == racks), None)


def current_ms(pace: Pace | None) -> float | None:
    """Milliseconds per step of late, None before enough was seen."""
    return median(pace.recent) if pace is not None and len(pace.recent) >= WINDOW // 3 else None


def forget_recent(p: Pass) -> Pass:
    """A new attempt is measured by its own steps."""
    return p.remember(paces=tuple(replace(pace, recent=()) for pace in p.memory.paces))
