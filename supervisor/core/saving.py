"""Saves that fail while training goes on: tried again by the trainer, told, endured for as long as the spec says."""

from __future__ import annotations

from supervisor.core.closing import hold
from supervisor.core.decision import Pass
from supervisor.core.ladder import Refusal
from supervisor.core.memory import Stage, StopFor
from supervisor.core.reasons import Reason


def see_failed_saves(p: Pass) -> Pass:
    """Since when no checkpoint could be made; a commit ends it."""
    attempt = p.memory.attempt
    if attempt is None:
        return p
    failed = [f for f in p.obs.failed_saves if f.attempt == attempt.number]
    committed = [c.checkpoint.step for c in p.memory.checkpoints if c.checkpoint.attempt == attempt.number]
    newest = max(failed, key=lambda f: f.step, default=None)
    if newest is None or newest.step <= max(committed, default=-1):
        if p.memory.unsaved_since_ms is not None and committed:
            p = p.note(Reason.SAVES_WORK, f"checkpoints are written again; the newest is of step {max(committed)}")
            return p.remember(unsaved_since_ms=None)
        return p
    if (newest.attempt, newest.step) == p.memory.failed_save:
        return p
    since = p.memory.unsaved_since_ms if p.memory.unsaved_since_ms is not None else p.now
    text = f"the save of step {newest.step} failed, and training goes on without: {newest.message}"
    return p.remember(unsaved_since_ms=since, failed_save=(newest.attempt, newest.step)).note(Reason.SAVES_FAIL, text)


def hold_unsaved(p: Pass) -> Pass:
    """Every further step might be lost: past the spec's limit a person must act."""
    attempt, since = p.memory.attempt, p.memory.unsaved_since_ms
    if attempt is None or since is None or attempt.stage is not Stage.STEPPING:
        return p
    limit = since + p.spec.unsaved_limit_ms
    if p.now < limit:
        return p.wake(limit)
    hours = p.spec.unsaved_limit_ms / 3_600_000
    message = f"no checkpoint could be written for {hours:g} h, at step {attempt.completed}"
    way_out = f"make room in checkpoint.directory, then: marin-sup resume {p.spec.name}"
    p = hold(p, Refusal(Reason.SAVES_FAIL, message, way_out))
    return p.with_attempt(attempt, stage=Stage.STOPPING, stage_since_ms=p.now, stop_for=StopFor.SUSPEND)
