"""What must be known before an attempt may start: what can be restored, and which layouts the trainer accepts."""

from __future__ import annotations

from dataclasses import replace

from supervisor.core.closing import hold
from supervisor.core.decision import Pass
from supervisor.core.ladder import MEND_THE_MANIFEST, NEVER_JUST_RESTARTED, Refusal, add_damaged
from supervisor.core.lineage import Candidate, candidates, damaged_on_lineage, rebuild
from supervisor.core.memory import CheckState
from supervisor.core.observation import (
    Checkpoint,
    Evidence,
    LayoutCheck,
    Prepared,
    StepState,
    Survey,
    TaskDone,
    TaskResult,
)
from supervisor.core.reasons import Reason

EXIT_DATA = 65  # sysexits(3), as the trainer contract has it
LAST_LINES = 4  # of what the trainer said before it ended


def survey_id(p: Pass) -> str:
    """Unlike any of another memory of this run: a worker may still hold the answer to a question of that one."""
    return f"survey-{p.memory.ledger.started_ms}-{p.memory.survey_number}"


def check_id(p: Pass) -> str:
    return f"check-{p.memory.ledger.started_ms}-{p.memory.check_number}"


def set_aside_id(checkpoint: Checkpoint) -> str:
    return f"set-aside-{checkpoint}"


def collect_id(newest: Checkpoint) -> str:
    return f"collect-{newest}"


def plan_collection(p: Pass) -> Pass:
    """What a new checkpoint of the current attempt made superfluous may go; one collection ends before the next."""
    attempt, pending = p.memory.attempt, p.memory.collecting
    if attempt is None:
        return p.remember(collecting=None)
    if pending is not None and pending.attempt == attempt.number:
        return p
    newest = p.memory.checkpoints[-1].checkpoint if p.memory.checkpoints else None
    due = newest is not None and newest.attempt == attempt.number and newest != p.memory.collected
    return p.remember(collecting=newest if due else None)


def want_check(p: Pass) -> Pass:
    """The trainer is asked anew whenever it, its arguments or the layout changed."""
    if not p.spec.check_layouts:
        return p.remember(checked_fingerprint=p.spec.fingerprint, check=CheckState.NOT_CHECKED)
    if p.memory.checked_fingerprint == p.spec.fingerprint:
        return p
    number = p.memory.check_number + 1
    return p.remember(checked_fingerprint=p.spec.fingerprint, check_number=number, check=CheckState.WANTED)


def read_results(p: Pass) -> Pass:
    for worker in p.obs.workers:
        for result in worker.results:
            p = _read(p, result)
    return p


def _read(p: Pass, result: TaskResult) -> Pass:
    match result:
        case Survey():
            wanted = p.memory.attempt is None and p.memory.found is None and result.id == survey_id(p)
            return _read_survey(p, result) if wanted else p
        case LayoutCheck():
            wanted = p.memory.check is CheckState.WANTED and result.id == check_id(p)
            return _read_check(p, result) if wanted else p
        case TaskDone():
            return _read_done(p, result)
        case Evidence() | Prepared():  # read where they were asked for
            return p


def _read_survey(p: Pass, survey: Survey) -> Pass:
    if survey.error:
        way_out = f"make checkpoint.directory readable and writable, then: marin-sup resume {p.spec.name}"
        p = p.remember(survey_number=p.memory.survey_number + 1)
        return hold(p, Refusal(Reason.SURVEY_FAILED, f"the checkpoints cannot be read: {survey.error}", way_out))
    memory = p.memory
    survey = survey if p.spec.verify else _taken_at_its_word(survey)
    on_disk = max((step.attempt for step in survey.steps), default=0)
    p = p.remember(newest_attempt=max(memory.newest_attempt, survey.newest_attempt, on_disk))
    if not memory.lineage and (lineage := rebuild(survey)):
        p = p.remember(lineage=lineage)
        p = p.note(Reason.LINEAGE_REBUILT, "memory knew no lineage; it was rebuilt from the manifests on disk")
    bad = damaged_on_lineage(p.memory.lineage, survey)
    for step in bad:
        if Checkpoint(step.attempt, step.step) not in memory.damaged:
            text = f"checkpoint a{step.attempt}:{step.step} does not verify and is set aside: {step.reason}"
            p = p.note(Reason.CHECKPOINT_SET_ASIDE, text)
    p = add_damaged(p, {Checkpoint(s.attempt, s.step) for s in bad})
    if p.memory.progress_mark is None and bad:  # a memory that was lost: there had been progress all the same
        newest = max(bad, key=lambda s: (s.attempt, s.step))
        p = p.remember(progress_mark=Checkpoint(newest.attempt, newest.step))
    return _remember_found(p, candidates(p.memory.lineage, survey, memory.checkpoints, p.memory.damaged))


def _taken_at_its_word(survey: Survey) -> Survey:
    """With checkpoint.verify false, a manifest that does not fit is the trainer's business."""
    steps = (replace(s, state=StepState.VERIFIED) if s.state is StepState.DAMAGED else s for s in survey.steps)
    return replace(survey, steps=tuple(steps))


def _remember_found(p: Pass, found: tuple[Candidate, ...]) -> Pass:
    newest = found[0].checkpoint if found else None
    mark = p.memory.progress_mark
    progressed = newest is not None and (mark is None or newest.step > mark.step)
    return p.remember(
        found=found,
        checkpoints=tuple(reversed(found)),
        progress_mark=newest if progressed else mark,
        high_step=max(p.memory.high_step, newest.step if newest else 0),
        stalled=0 if progressed else p.memory.stalled,
    )


def _read_check(p: Pass, check: LayoutCheck) -> Pass:
    if refusal := _failed_check(p, check) or _refused_layouts(p, check):
        p = p.remember(check=CheckState.REFUSED, check_number=p.memory.check_number + 1)
        if p.memory.attempt is not None:  # what trains goes on; before the next attempt it is asked again
            return p.note(refusal.reason, refusal.message)
        return hold(p, refusal)
    if not check.answers:
        p = p.note(Reason.LAYOUTS_NOT_CHECKED, "the trainer does not answer layout checks; accepted as it is")
        return p.remember(check=CheckState.NOT_CHECKED)
    p = p.note(Reason.LAYOUTS_FIT, f"the trainer accepts every allowed layout ({len(check.answers)})")
    return p.remember(check=CheckState.FITS)


def _failed_check(p: Pass, check: LayoutCheck) -> Refusal | None:
    """The trainer, or the worker for it, said nothing of any layout but that it cannot run."""
    if not check.error:
        return None
    said = " ".join([line.strip() for line in check.error.splitlines() if line.strip()][-LAST_LINES:])[:500]
    reason = Reason.DATA_ERROR if check.exit_code == EXIT_DATA else Reason.CONFIGURATION_ERROR
    way_out = NEVER_JUST_RESTARTED[reason].format(run=p.spec.name)
    return Refusal(reason, f"the trainer cannot run as it is configured: {said}", way_out)


def _refused_layouts(p: Pass, check: LayoutCheck) -> Refusal | None:
    """Each allowed layout that the trainer refuses or passes over; only no answer at all is no refusal."""
    if not check.answers:
        return None
    answers = {answer.layout: answer for answer in check.answers}
    lines = []
    for layout in p.spec.allowed_layouts():
        answer = answers.get(layout)
        if answer is None:
            lines.append(f"layout {layout}: no answer")
        elif not answer.fits:
            lines.append(f"layout {layout}: {answer.reason or 'no reason given'}")
    if not lines:
        return None
    message = "the trainer refuses: " + "; ".join(lines)[:2000]
    return Refusal(Reason.LAYOUT_REFUSED, message, MEND_THE_MANIFEST.format(run=p.spec.name))


def _read_done(p: Pass, done: TaskDone) -> Pass:
    for checkpoint in p.memory.to_set_aside:
        if done.id == set_aside_id(checkpoint):
            words = "is set aside" if done.ok else f"could not be set aside: {done.error}"
            p = p.note(Reason.CHECKPOINT_SET_ASIDE, f"checkpoint {checkpoint} {words}")
            return p.remember(to_set_aside=tuple(c for c in p.memory.to_set_aside if c != checkpoint))
    pending = p.memory.collecting
    if pending is None or done.id != collect_id(pending):
        return p
    if not done.ok:
        p = p.note(Reason.STORAGE_ERROR, f"old checkpoints could not be collected: {done.error}")
    return p.remember(collected=pending, collecting=None)
