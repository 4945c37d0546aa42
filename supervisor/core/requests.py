"""What people ask of a run: each request once per id, with an outcome that anybody can read."""

from __future__ import annotations

from dataclasses import replace

from supervisor.core.answering import answer
from supervisor.core.budget import forgiven
from supervisor.core.decision import Pass
from supervisor.core.judging import supersede_incident
from supervisor.core.memory import (
    Attempt,
    CheckState,
    Phase,
    RequestOutcome,
    RequestState,
    Stage,
    StopFor,
)
from supervisor.core.observation import Ask, Request
from supervisor.core.reasons import Reason
from supervisor.core.rollback import roll_back
from supervisor.core.spec import Cause


def heed_requests(p: Pass) -> Pass:
    for request in p.obs.requests:
        if all(outcome.id != request.id for outcome in p.memory.requests):
            p = _heed(p, request)
    return p


def settle_saves(p: Pass) -> Pass:
    """A requested save is done once a later step is committed, and refused once its attempt is over."""
    outcomes = tuple(_settled(p, outcome) for outcome in p.memory.requests)
    if outcomes == p.memory.requests:
        return p
    for before, after in zip(p.memory.requests, outcomes, strict=True):
        if before.state is not after.state:
            reason = Reason.REQUEST_DONE if after.state is RequestState.DONE else Reason.REQUEST_REFUSED
            p = p.note(reason, f"request {after.id}: {after.message}")
    return p.remember(requests=outcomes)


def heed_suspension(p: Pass) -> Pass:
    """Save and stop what trains; where nothing can be saved yet, just stop.

    A trainer that reports its steps knows the contract and may heed the control file, whether it said hello or not.
    """
    attempt = p.memory.attempt
    if attempt is None or not suspension_wanted(p):
        return p
    if attempt.stage is Stage.STEPPING:
        p = p.with_attempt(attempt, stage=Stage.SAVING, stage_since_ms=p.now)
        return p.say(Reason.STOPPING, f"attempt {attempt.number} saves and stops, as asked")
    if attempt.stop_for is StopFor.MOVE:  # it saves already
        return p.with_attempt(attempt, stop_for=StopFor.SUSPEND)
    if attempt.stage is Stage.LAUNCHING:
        p = p.with_attempt(attempt, stage=Stage.STOPPING, stage_since_ms=p.now, stop_for=StopFor.SUSPEND)
        return p.say(
            Reason.STOPPING, f"attempt {attempt.number} is stopped, as asked; it had completed no step to save"
        )
    return p


def suspension_wanted(p: Pass) -> bool:
    return p.spec.suspend or p.memory.suspend_asked


def _heed(p: Pass, request: Request) -> Pass:
    match request.ask:
        case Ask.STOP:
            return _stop(p, request)
        case Ask.CHECKPOINT_NOW:
            return _checkpoint_now(p, request)
        case Ask.RESUME:
            return _resume(p, request)
        case Ask.ROLLBACK:
            return roll_back(p, request)


def _stop(p: Pass, request: Request) -> Pass:
    if p.memory.phase is Phase.SUCCEEDED:
        return answer(p, request, RequestState.REFUSED, "the run has succeeded already")
    return answer(p.remember(suspend_asked=True), request, RequestState.DONE, "the run saves and stops")


def _checkpoint_now(p: Pass, request: Request) -> Pass:
    attempt = p.memory.attempt
    if attempt is None or attempt.stage not in (Stage.LAUNCHING, Stage.STEPPING):
        return answer(p, request, RequestState.REFUSED, f"nothing trains now (the run is {p.memory.phase.value})")
    p = p.with_attempt(attempt, save=attempt.save + 1)
    message = f"attempt {attempt.number} is asked to save"
    return answer(p, request, RequestState.PENDING, message, after_step=attempt.completed, attempt=attempt.number)


def _resume(p: Pass, request: Request) -> Pass:
    memory = p.memory
    if memory.phase is Phase.SUCCEEDED:
        return answer(p, request, RequestState.REFUSED, "the run has succeeded already")
    if memory.hold is None and not memory.suspend_asked and memory.attempt is not None:
        text = "the run trains already"
        if request.from_step is not None:
            text = f"the run trains; stop it first: marin-sup stop {p.spec.name}"
        return answer(p, request, RequestState.REFUSED, text)
    if p.spec.suspend:
        return answer(p, request, RequestState.REFUSED, "spec.suspend is true; set it to false")
    if request.from_step is not None:  # what is done again from there is this person's choice, not the fault's cost
        action = f"a person went back to step {request.from_step}"
        p = supersede_incident(p, memory.ledger.run, action=action)
    p = p.remember(
        hold=None,
        suspend_asked=False,
        stalled=0,
        charges=forgiven(memory.charges, frozenset(Cause)),
        from_step=request.from_step,
        found=None,
        survey_number=memory.survey_number + 1,
        damaged=memory.to_set_aside,  # what was moved away and is there again, a person has brought back
        check=CheckState.WANTED if memory.check is CheckState.REFUSED else memory.check,
    )
    step = f" from step {request.from_step}" if request.from_step is not None else ""
    p = p.say(Reason.RESUMED, f"resumed by request {request.id}{step}")
    return answer(p.note(Reason.RESUMED, f"a person resumed the run{step}"), request, RequestState.DONE, "resuming")


def _settled(p: Pass, outcome: RequestOutcome) -> RequestOutcome:
    if outcome.state is not RequestState.PENDING:
        return outcome
    saved = [
        c.checkpoint
        for c in p.memory.checkpoints
        if c.checkpoint.attempt == outcome.attempt and c.checkpoint.step > outcome.after_step
    ]
    if saved:
        return replace(outcome, state=RequestState.DONE, message=f"saved as {saved[0]}")
    attempt: Attempt | None = p.memory.attempt
    if attempt is None or attempt.number != outcome.attempt or attempt.stage is Stage.STOPPING:
        return replace(outcome, state=RequestState.REFUSED, message="the attempt ended before it had saved")
    return outcome
