"""The end of an attempt, and of an incident."""

from __future__ import annotations

from dataclasses import replace

from supervisor.core.decision import Pass
from supervisor.core.incident import Outcome, closed
from supervisor.core.judging import gang_ended
from supervisor.core.ladder import Refusal, judge_fault
from supervisor.core.memory import Attempt, Hold, Phase, Stage, StopFor
from supervisor.core.reasons import Reason


def close_attempt(p: Pass) -> Pass:
    """Once no rank of a stopping attempt lives, say what it was and make room for the next."""
    attempt = p.memory.attempt
    if attempt is None or attempt.stage is not Stage.STOPPING or not gang_ended(p, attempt):
        return p
    p = p.remember(high_step=max(p.memory.high_step, attempt.completed), placement=attempt.placement)
    match attempt.stop_for:
        case StopFor.DONE:
            p = _succeed(p, attempt)
        case StopFor.SUSPEND | None:
            p = p.note(Reason.SUSPENDED, _ended_as_asked(p, attempt))
        case StopFor.ROLLBACK:
            p = p.note(Reason.STOPPING, f"attempt {attempt.number} ended at step {attempt.completed} for the rollback")
        case StopFor.MOVE:
            p = p.note(Reason.STOPPING, f"{_ended_as_asked(p, attempt)}, and moves on")
        case StopFor.FAULT:
            p, refusal = judge_fault(p, attempt)
            if refusal is not None:
                p = hold(p, refusal)
    return p.remember(attempt=None, found=None, survey_number=p.memory.survey_number + 1)


def _ended_as_asked(p: Pass, attempt: Attempt) -> str:
    if not attempt.completed:
        reached = f"; the run had reached step {p.memory.high_step}" if p.memory.high_step else ""
        return f"attempt {attempt.number} ended, as asked, before it completed a step{reached}"
    saved = p.memory.checkpoints[-1].checkpoint.step if p.memory.checkpoints else 0
    if attempt.completed <= saved:
        return f"attempt {attempt.number} ended at step {attempt.completed}, as asked"
    last = f"step {saved} was the last one saved" if saved else "nothing was saved before"
    return f"attempt {attempt.number} was stopped at step {attempt.completed} without saving; {last}"


def _succeed(p: Pass, attempt: Attempt) -> Pass:
    message = f"all steps are trained; the last is {max(attempt.completed, p.memory.high_step)}"
    if p.memory.incident is not None:
        p = _recovered(p)
    return p.remember(phase=Phase.SUCCEEDED).say(Reason.COMPLETED, message).note(Reason.COMPLETED, message)


def hold(p: Pass, refusal: Refusal) -> Pass:
    """A person must act. The incident that led here, if any, stays open until the run trains again."""
    p = p.remember(hold=Hold(refusal.reason, refusal.message, refusal.way_out, p.now))
    p = p.say(refusal.reason, refusal.message).note(refusal.reason, f"held: {refusal.message}")
    incident = p.memory.incident
    if incident is None:
        return p
    held = replace(
        closed(incident, Outcome.HELD, p.memory.ledger.run, p.now),
        rung=refusal.reason,
        action=f"held: {refusal.way_out}",
        closed_ms=None,
    )
    return p.record(held, held)


def recover_incident(p: Pass) -> Pass:
    """An incident is over when the run completes a step that it had not completed before."""
    attempt, incident = p.memory.attempt, p.memory.incident
    if attempt is None or incident is None or attempt.stage not in (Stage.STEPPING, Stage.SAVING):
        return p
    if attempt.number == incident.attempt or attempt.completed <= incident.step:
        return p
    return _recovered(p)


def _recovered(p: Pass) -> Pass:
    incident = p.memory.incident
    if incident is None:
        return p
    p = p.record(None, closed(incident, Outcome.RECOVERED, p.memory.ledger.run, p.now))
    return p.remember(recovered=p.memory.recovered + 1)
