"""Programs for the smaller layouts, compiled while training goes on, so that a shrink need not wait for a compiler."""

from __future__ import annotations

from supervisor.core.actions import Task, TaskKind
from supervisor.core.decision import Pass
from supervisor.core.memory import Stage
from supervisor.core.observation import Prepared
from supervisor.core.reasons import Reason
from supervisor.core.spec import Layout

STEPS_BEFORE = 5  # an attempt that has just begun is left alone


def preparation_wanted(p: Pass) -> Task | None:
    """The task that prepares every other allowed layout, once for each fingerprint, while the run is well."""
    attempt = p.memory.attempt
    if not p.spec.prepare_ahead or attempt is None or attempt.stage is not Stage.STEPPING:
        return None
    if p.memory.preparing == p.spec.fingerprint or p.memory.incident is not None:
        return None
    begun_at = attempt.parent.step if attempt.parent else 0
    if attempt.completed < begun_at + STEPS_BEFORE:
        return None
    layouts = _others(p)
    return Task(_prepare_id(p), TaskKind.PREPARE, layouts=layouts) if layouts else None


def _others(p: Pass) -> tuple[Layout, ...]:
    """The nearest first: the next rack to be lost is the likeliest."""
    attempt = p.memory.attempt
    now = attempt.placement.layout if attempt else None
    return tuple(layout for layout in p.spec.allowed_layouts() if layout != now)


def _prepare_id(p: Pass) -> str:
    return f"prepare-{p.memory.ledger.started_ms}-{p.spec.fingerprint}"


def read_preparation(p: Pass) -> Pass:
    if p.memory.preparing == p.spec.fingerprint:
        return p
    wanted = _prepare_id(p)
    for worker in p.obs.workers:
        for result in worker.results:
            if isinstance(result, Prepared) and result.id == wanted:
                return _remember(p, result)
    return p


def _remember(p: Pass, result: Prepared) -> Pass:
    ready = tuple(answer.layout for answer in result.layouts if answer.fits)
    missing = [f"{answer.layout}: {answer.reason}" for answer in result.layouts if not answer.fits]
    unprepared = (result.error or "; ".join(missing))[:500]
    p = p.remember(preparing=p.spec.fingerprint, prepared=ready, unprepared=unprepared)
    if ready:
        names = ", ".join(str(layout) for layout in ready)
        p = p.note(Reason.PROGRAMS_PREPARED, f"the programs for {names} are compiled ahead")
    if unprepared:
        p = p.note(Reason.PROGRAMS_NOT_PREPARED, f"some programs are not compiled ahead: {unprepared}")
    return p
