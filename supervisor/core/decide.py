"""The decision: an ordered list of phases, each a pure function from one state of the pass to the next."""

from __future__ import annotations

from collections.abc import Callable

from supervisor.core.closing import close_attempt, recover_incident
from supervisor.core.decision import Decision, Pass
from supervisor.core.foresight import read_preparation
from supervisor.core.judging import judge_gang, wake_for_deadline
from supervisor.core.launching import launch
from supervisor.core.ledger import opened
from supervisor.core.memory import Memory, Phase, Stage, StopFor
from supervisor.core.moving import move_at_checkpoint, see_idle_rack
from supervisor.core.observation import Observation
from supervisor.core.ordering import send_orders, tend_workers
from supervisor.core.pace import watch_pace
from supervisor.core.preparing import plan_collection, read_results, want_check
from supervisor.core.reasons import Reason
from supervisor.core.requests import heed_requests, heed_suspension, settle_saves, suspension_wanted
from supervisor.core.saving import hold_unsaved, see_failed_saves
from supervisor.core.slowness import judge_slowness
from supervisor.core.spec import Spec
from supervisor.core.suspecting import watch_phase
from supervisor.core.timekeeping import account_time, explain_absence, forget_absence, set_category
from supervisor.core.watching import hear_workers, see_commits, see_progress


def decide(spec: Spec, memory: Memory, obs: Observation, now: int) -> Decision:
    """What to remember and what to ask for, given what was seen at `now` (ms).

    Total and deterministic: it may be called at any time, any number of times; a settled run yields no actions.
    The memory must be persisted before any of the actions is carried out.
    """
    p = Pass(spec, obs, now, memory)
    for phase in PHASES:
        p = phase(p)
    if p.memory != memory:
        p = p.remember(revision=memory.revision + 1)
    return p.decision()


def first_memory(now: int) -> Memory:
    """What a run that nobody has seen before remembers."""
    return Memory(ledger=opened(now))


def name_phase(p: Pass) -> Pass:
    phase = _phase(p)
    if phase is Phase.SUSPENDED:
        p = p.say(Reason.SUSPENDED, _suspended(p))
    if phase is Phase.RUNNING and p.memory.reason is Reason.ATTEMPT_STARTED and p.memory.attempt is not None:
        p = p.say(Reason.STEPPING, f"attempt {p.memory.attempt.number} trains on {p.memory.attempt.placement.layout}")
    return p.remember(phase=phase)


def _suspended(p: Pass) -> str:
    """Said anew in each pass: a survey may find another checkpoint than the last one that was told of."""
    newest = p.memory.checkpoints[-1].checkpoint.step if p.memory.checkpoints else 0
    where = f"from step {newest}" if newest else "from the beginning"
    beyond = f" (step {p.memory.high_step} was reached)" if p.memory.high_step > newest else ""
    return f"suspended; goes on {where}{beyond} with: marin-sup resume {p.spec.name}"


def _phase(p: Pass) -> Phase:
    memory, attempt = p.memory, p.memory.attempt
    if memory.phase is Phase.SUCCEEDED:
        return Phase.SUCCEEDED
    if attempt is None:
        return _phase_without_attempt(p)
    if attempt.stage is Stage.LAUNCHING or attempt.stop_for in (StopFor.FAULT, StopFor.ROLLBACK):
        return Phase.RECOVERING if memory.incident is not None else Phase.STARTING
    return Phase.RUNNING


def _phase_without_attempt(p: Pass) -> Phase:
    if p.memory.hold is not None:
        return Phase.HELD
    if suspension_wanted(p):
        return Phase.SUSPENDED
    return Phase.RECOVERING if p.memory.incident is not None else Phase.PENDING


PHASES: tuple[Callable[[Pass], Pass], ...] = (  # order is part of the meaning
    account_time,
    hear_workers,
    see_progress,
    see_commits,
    see_failed_saves,
    watch_phase,
    watch_pace,
    explain_absence,
    heed_requests,
    want_check,
    read_results,
    read_preparation,
    judge_gang,
    hold_unsaved,
    heed_suspension,
    close_attempt,
    settle_saves,
    recover_incident,
    launch,
    see_idle_rack,
    judge_slowness,
    move_at_checkpoint,
    plan_collection,
    wake_for_deadline,
    name_phase,
    tend_workers,
    send_orders,
    forget_absence,
    set_category,
)
