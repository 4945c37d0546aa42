"""From a verdict to the next attempt, or to Held: which rung, and why no higher one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from supervisor.core.budget import Charge, charged, exhausted, set_aside, used
from supervisor.core.classify import classify
from supervisor.core.decision import Pass
from supervisor.core.incident import Incident, Outcome
from supervisor.core.judging import gang_fault
from supervisor.core.memory import Attempt
from supervisor.core.observation import Checkpoint
from supervisor.core.placement import Placement
from supervisor.core.reasons import Reason
from supervisor.core.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the next attempt must not simply start."""

    reason: Reason
    message: str
    way_out: str


# What a restart cannot heal, with what a person has to mend first.
MEND_THE_MANIFEST = (
    "mend the manifest and run it again: marin-sup run FILE (or, if the mistake was elsewhere: marin-sup resume {run})"
)
NEVER_JUST_RESTARTED: dict[Reason, str] = {
    Reason.CONFIGURATION_ERROR: MEND_THE_MANIFEST,
    Reason.CHECKPOINT_FOREIGN: "point checkpoint.directory elsewhere or restore the model's configuration: "
    + MEND_THE_MANIFEST,
    Reason.DATA_ERROR: "mend the data, then: marin-sup resume {run}",
    Reason.NON_FINITE_LOSS: "find the cause first (marin-sup logs {run}), then go back to an earlier step: "
    "marin-sup resume {run} --from-step N",
}


def judge_fault(p: Pass, attempt: Attempt) -> tuple[Pass, Refusal | None]:
    """The attempt has ended by a fault: name the cause, charge it once, and say whether it may be tried again."""
    verdict = classify(gang_fault(p, attempt))
    incident = p.memory.incident
    if incident is None:  # cannot be: a fault stop opened it; but decide is total
        return p, None
    reached = max(attempt.completed, attempt.parent.step if attempt.parent else 0)
    incident = replace(incident, verdict=verdict, step=max(incident.step, attempt.completed), reached=reached)
    p = p.note(verdict.reason, verdict.because).record(incident, incident)
    p = _charge(p, verdict)
    committed = any(c.checkpoint.attempt == attempt.number for c in p.memory.checkpoints)
    p = p.remember(stalled=0 if committed else p.memory.stalled + 1)
    p = _remember_damage(p, attempt, verdict)
    return p, _refusal(p, verdict)


def _charge(p: Pass, verdict: Verdict) -> Pass:
    before = set_aside(p.memory.charges, p.spec.node_faults, p.now)
    p = p.remember(charges=charged(p.memory.charges, Charge(verdict.cause, p.now, verdict.node)))
    for node in sorted(set_aside(p.memory.charges, p.spec.node_faults, p.now) - before):
        p = p.note(Reason.NODE_SET_ASIDE, f"node {node} is set aside: it was blamed {p.spec.node_faults.count} times")
    return p


def _remember_damage(p: Pass, attempt: Attempt, verdict: Verdict) -> Pass:
    """What failed its checksums is never offered again, and is moved out of the way."""
    if verdict.reason is not Reason.CHECKPOINT_DAMAGED:
        return p
    alarms = [a for a in p.obs.alarms if a.attempt == attempt.number and a.kind == "checkpoint-damaged"]
    named = {alarm.checkpoint for alarm in alarms if alarm.checkpoint is not None}
    if attempt.parent is not None and not named:
        named = {attempt.parent}
    return add_damaged(p, named)


def add_damaged(p: Pass, checkpoints: set[Checkpoint]) -> Pass:
    new = tuple(sorted(checkpoints - set(p.memory.damaged), key=lambda c: (c.attempt, c.step)))
    kept = tuple(c for c in p.memory.checkpoints if c.checkpoint not in new)
    return p.remember(
        damaged=(*p.memory.damaged, *new)[-256:],
        to_set_aside=(*p.memory.to_set_aside, *new)[-256:],
        checkpoints=kept,
    )


def _refusal(p: Pass, verdict: Verdict) -> Refusal | None:
    run = p.spec.name
    if way_out := NEVER_JUST_RESTARTED.get(verdict.reason):
        return Refusal(verdict.reason, verdict.because, way_out.format(run=run))
    if exhausted(p.memory.charges, verdict.cause, p.spec.budgets, p.now):
        return _budget_refusal(p, verdict)
    return None


def no_progress(p: Pass) -> Refusal | None:
    """Restarts that reach no newer checkpoint are a loop, whatever the budgets say.

    Judged after the survey: a commit that nobody could report any more is progress, too.
    """
    if p.memory.stalled < p.spec.no_progress_limit:
        return None
    verdict = p.memory.incident.verdict if p.memory.incident else None
    last = f"; the last: {verdict.because}" if verdict else ""
    message = f"{p.memory.stalled} attempts in a row ended without a newer checkpoint{last}"
    run = p.spec.name
    return Refusal(Reason.NO_PROGRESS, message, f"look at marin-sup logs {run}, then: marin-sup resume {run}")


def _budget_refusal(p: Pass, verdict: Verdict) -> Refusal:
    budget = p.spec.budgets.of(verdict.cause)
    count = used(p.memory.charges, verdict.cause, budget, p.now) if budget else 0
    hours = f"{budget.window_ms / 3_600_000:g}h" if budget else ""
    allowed = budget.count if budget else 0
    message = f"{count} {verdict.cause.value} faults within {hours}, {allowed} are allowed; the last: {verdict.because}"
    way_out = f"look at marin-sup incidents {p.spec.name}, then: marin-sup resume {p.spec.name}"
    return Refusal(Reason.BUDGET_EXHAUSTED, message, way_out)


def rung(before: Placement | None, after: Placement) -> tuple[Reason, str]:
    """Which rung of the ladder leads from one placement to the next, in a code and in words."""
    if before is None or before == after:
        return Reason.RESTART_IN_PLACE, "restarted in place"
    old_racks = [rack.rack for rack in before.racks]
    new_racks = [rack.rack for rack in after.racks]
    gone = [rack for rack in old_racks if rack not in new_racks]
    if len(new_racks) < len(old_racks):
        return Reason.DROP_RACK, f"resharded from {len(old_racks)} to {len(new_racks)} racks without {', '.join(gone)}"
    if len(new_racks) > len(old_racks):
        return Reason.GROW, f"resharded from {len(old_racks)} to {len(new_racks)} racks"
    if gone:
        came = [rack for rack in new_racks if rack not in old_racks]
        return Reason.MOVE_TO_SPARE_RACK, f"moved from rack {', '.join(gone)} to {', '.join(came)}"
    if before.layout != after.layout:
        return Reason.RESHAPED, f"resharded from {before.layout} to {after.layout}"
    out = [node for node in before.nodes if node not in after.nodes]
    came = [node for node in after.nodes if node not in before.nodes]
    if not out and not came:
        return Reason.RESTART_IN_PLACE, "restarted in place"
    return Reason.SWAP_SPARE, f"swapped {', '.join(out)} for {', '.join(came)}"


def acted(incident: Incident, before: Placement | None, after: Placement, resume: Checkpoint | None) -> Incident:
    """The incident with what is being done about it."""
    reason, words = rung(before, after)
    step = resume.step if resume else 0
    where = f"from step {resume.step}" if resume else "from the beginning"
    return replace(
        incident,
        rung=reason,
        action=f"{words}, {where}",
        resumed_from=resume,
        steps_lost=max(0, incident.reached - step),
        outcome=Outcome.OPEN,  # a run that was held is being recovered again
    )
