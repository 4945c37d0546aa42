"""The conditions of a run, each as far as memory can say; what it cannot say is Unknown, never guessed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

from supervisor.api.status import Condition
from supervisor.api.types import Spec
from supervisor.core.memory import CheckState, Memory, Phase, Stage
from supervisor.core.observation import Checkpoint
from supervisor.core.reasons import Reason

MAX_MESSAGE = 4096
MISSED_SAVES = 2  # a checkpoint is stale once it is older than so many of its intervals
Answer = Literal["True", "False", "Unknown"]


def conditions(
    spec: Spec, memory: Memory, commit_times: Mapping[Checkpoint, int], step: int, now_ms: int
) -> tuple[Condition, ...]:
    """`commit_times`: when each known checkpoint was committed; `step`: done on today's lineage."""
    held = memory.hold
    budget_gone = held is not None and held.reason is Reason.BUDGET_EXHAUSTED
    return (
        _accepted(memory),
        _placed(memory),
        _progressing(memory),
        _checkpoint_fresh(spec, memory, commit_times, step, now_ms),
        _degraded(spec, memory),
        _phase_is(memory, Phase.SUSPENDED, "Suspended"),
        _phase_is(memory, Phase.SUCCEEDED, "Complete"),
        _phase_is(memory, Phase.FAILED, "Failed"),
        _condition(
            "BudgetExhausted",
            _yes(budget_gone),
            memory.reason.value,
            held.message if held and budget_gone else "",
            held.since_ms if held and budget_gone else None,
        ),
    )


def _accepted(memory: Memory) -> Condition:
    answers: dict[CheckState, tuple[Answer, Reason, str]] = {
        CheckState.FITS: ("True", Reason.LAYOUTS_FIT, "the trainer accepts every layout from minRacks to racks"),
        CheckState.NOT_CHECKED: ("True", Reason.LAYOUTS_NOT_CHECKED, "the trainer was not asked, or does not know"),
        CheckState.WANTED: ("Unknown", Reason.CHECKING_LAYOUTS, "the trainer has not been asked yet"),
        CheckState.REFUSED: (
            "False",
            memory.hold.reason if memory.hold else Reason.LAYOUT_REFUSED,
            memory.hold.message if memory.hold else "",
        ),
    }
    return _condition("Accepted", answers[memory.check][0], answers[memory.check][1].value, answers[memory.check][2])


def _placed(memory: Memory) -> Condition:
    attempt = memory.attempt
    if attempt is None:
        return _condition("Placed", "False", memory.reason.value, memory.message)
    nodes = ", ".join(attempt.placement.nodes)
    text = f"attempt {attempt.number} is on {nodes}"
    return _condition("Placed", "True", Reason.ATTEMPT_STARTED.value, text, attempt.started_ms)


def _progressing(memory: Memory) -> Condition:
    attempt = memory.attempt
    if attempt is None or attempt.stage is not Stage.STEPPING:
        return _condition("Progressing", "False", memory.reason.value, memory.message)
    text = f"attempt {attempt.number} has completed step {attempt.completed}"
    return _condition("Progressing", "True", Reason.STEPPING.value, text, attempt.stage_since_ms)


def _checkpoint_fresh(
    spec: Spec, memory: Memory, commit_times: Mapping[Checkpoint, int], step: int, now_ms: int
) -> Condition:
    every_steps, every_seconds = spec.checkpoint.every_steps, spec.checkpoint.every_seconds
    newest = memory.checkpoints[-1].checkpoint if memory.checkpoints else None
    since = commit_times.get(newest) if newest is not None else None
    at = newest.step if newest is not None else 0
    what = f"the newest checkpoint is {newest}" if newest is not None else "nothing is saved yet"
    if every_steps is not None:
        fresh = step - at <= MISSED_SAVES * every_steps
        text = f"{what}, {max(0, step - at)} steps ago; one is wanted every {every_steps} steps"
    elif every_seconds is not None:
        age_ms = now_ms - (since if since is not None else memory.ledger.started_ms)
        fresh = age_ms <= MISSED_SAVES * every_seconds * 1000
        text = f"{what}, {age_ms // 1000} s ago; one is wanted every {every_seconds} s"
    else:
        text = f"{what}; the trainer decides how often"
        return _condition("CheckpointFresh", "Unknown", Reason.INTERVAL_NOT_KNOWN.value, text)
    reason = Reason.CHECKPOINT_FRESH if fresh else Reason.CHECKPOINT_STALE
    return _condition("CheckpointFresh", _yes(fresh), reason.value, text, since)


def _degraded(spec: Spec, memory: Memory) -> Condition:
    placement = memory.attempt.placement if memory.attempt else None
    if placement is None:
        return _condition("Degraded", "Unknown", memory.reason.value, "nothing trains now")
    racks, wanted = len(placement.racks), spec.layout.racks
    fewer = racks < wanted
    reason = Reason.DROP_RACK if fewer else Reason.ALL_RACKS
    return _condition("Degraded", _yes(fewer), reason.value, f"{racks} of {wanted} racks train")


def _phase_is(memory: Memory, phase: Phase, name: str) -> Condition:
    here = memory.phase is phase
    return _condition(name, _yes(here), memory.reason.value, memory.message if here else "")


def _condition(name: str, answer: Answer, reason: str, message: str, since_ms: int | None = None) -> Condition:
    since = datetime.fromtimestamp(since_ms / 1000, UTC) if since_ms is not None else None
    return Condition(type=name, status=answer, reason=reason, message=message[:MAX_MESSAGE], last_transition_time=since)


def _yes(value: bool) -> Answer:
    return "True" if value else "False"
