"""Going back to an earlier step because a person says so: an incident of its own, charged to nobody."""

from __future__ import annotations

from dataclasses import replace

from supervisor.core.answering import answer
from supervisor.core.decision import Pass
from supervisor.core.incident import Incident
from supervisor.core.judging import supersede_incident
from supervisor.core.memory import CheckState, Phase, RequestState, Stage, StopFor
from supervisor.core.observation import Request
from supervisor.core.reasons import Reason
from supervisor.core.spec import Cause
from supervisor.core.verdict import Verdict

SHOWN_STEPS = 20


def roll_back(p: Pass, request: Request) -> Pass:
    """End what trains, and start again from the checkpoint of that step; the batches after it may be passed over."""
    if problem := _problem(p, request):
        return answer(p, request, RequestState.REFUSED, problem)
    step = request.from_step or 0
    p = _open_incident(p, request, step)
    kept = tuple(skip for skip in p.memory.skips if skip[0] < step)
    skips = (*kept, (step, request.skip_batches)) if request.skip_batches else kept
    p = p.remember(
        hold=None,
        suspend_asked=False,
        stalled=0,
        from_step=step,
        skips=skips,
        check=CheckState.WANTED if p.memory.check is CheckState.REFUSED else p.memory.check,
    )
    attempt = p.memory.attempt
    if attempt is None:
        p = p.remember(found=None, survey_number=p.memory.survey_number + 1)
    elif attempt.stage is not Stage.STOPPING:
        p = p.with_attempt(attempt, stage=Stage.STOPPING, stage_since_ms=p.now, stop_for=StopFor.ROLLBACK)
    else:
        p = p.with_attempt(attempt, stop_for=StopFor.ROLLBACK)
    p = p.say(Reason.ROLLED_BACK, f"a person goes back to {_what(request, step)}")
    return answer(p, request, RequestState.DONE, f"going back to {_what(request, step)}")


def _what(request: Request, step: int) -> str:
    skipped = f", passing over the next {request.skip_batches} batches" if request.skip_batches else ""
    return f"step {step}{skipped}"


def _problem(p: Pass, request: Request) -> str:
    if p.memory.phase is Phase.SUCCEEDED:
        return "the run has succeeded already"
    if p.spec.suspend:
        return "spec.suspend is true; set it to false"
    step = request.from_step or 0
    known = [c.checkpoint.step for c in p.memory.checkpoints]
    if step == 0 or step in known:
        return ""
    steps = ", ".join(str(known_step) for known_step in known[-SHOWN_STEPS:]) or "none"
    return f"there is no checkpoint of step {step}; there are: {steps}"


def _open_incident(p: Pass, request: Request, step: int) -> Pass:
    """A fault that was being recovered gives way: what comes now is this person's choice."""
    attempt = p.memory.attempt
    p = supersede_incident(p, p.memory.ledger.run, action=f"a person went back to step {step}")
    high = max(p.memory.high_step, attempt.completed if attempt else 0)
    number = p.memory.incidents + 1
    because = f"a person asked to go back to {_what(request, step)} (request {request.id})"
    verdict = Verdict(Cause.REQUEST, "a person", Reason.ROLLED_BACK, because)
    newest = attempt.number if attempt else p.memory.newest_attempt
    incident = Incident(number, newest, p.now, high, p.memory.ledger.run, verdict, reached=high)
    p = p.remember(incidents=number, high_step=high).note(Reason.ROLLED_BACK, because)
    return p.record(incident, replace(incident))
