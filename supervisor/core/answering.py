"""What a person is told about a request."""

from __future__ import annotations

from supervisor.core.decision import Pass
from supervisor.core.memory import MAX_REQUESTS, RequestOutcome, RequestState
from supervisor.core.observation import Request
from supervisor.core.reasons import Reason


def answer(p: Pass, request: Request, state: RequestState, message: str, after_step: int = 0, attempt: int = 0) -> Pass:
    """Remember the outcome under the request's id, so that it is carried out once."""
    outcome = RequestOutcome(request.id, request.ask, state, message, after_step, attempt)
    if state is RequestState.REFUSED:
        p = p.note(Reason.REQUEST_REFUSED, f"request {request.id} ({request.ask.value}): {message}")
    asked = {seen.id for seen in p.obs.requests}  # an outcome is forgotten only once nobody asks for it any more
    old = [done for done in p.memory.requests[: -MAX_REQUESTS + 1] if done.id in asked]
    return p.remember(requests=(*old, *p.memory.requests[-MAX_REQUESTS + 1 :], outcome))
