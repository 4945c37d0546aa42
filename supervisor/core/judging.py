"""Has the current attempt failed, or finished? Detection only: what it means is `classify`, what to do the ladder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from supervisor.core import ledger
from supervisor.core.decision import Pass
from supervisor.core.gang_fault import GangFault, RankExit
from supervisor.core.incident import Incident, Outcome, closed
from supervisor.core.ledger import Category, Times
from supervisor.core.memory import Attempt, Stage, StopFor
from supervisor.core.observation import Alarm, Worker
from supervisor.core.reasons import Reason
from supervisor.core.suspecting import judge_hang
from supervisor.core.verdict import Verdict
from supervisor.core.watching import ranks_of

KILL_MS = 30_000  # how long after its grace a rank may take to be gone
SAVE_BEFORE_STOP_MS = 600_000  # how long a trainer that was asked to save and stop may take before it gets TERM
SAVE_UNGREETED_MS = 30_000  # the same, on top of the grace, for one that never said hello and may not heed the request


def judge_gang(p: Pass) -> Pass:
    """Find what ended, or is about to end, the current attempt, and begin to stop what is left of it."""
    judged = _judge(p)
    before, attempt = p.memory.attempt, judged.memory.attempt
    if attempt is None or before is None or attempt.stage is before.stage or attempt.stage is not Stage.STOPPING:
        return judged
    return _see_lost_workers(judged, attempt)[0]  # with the gang given up, whoever is away now is lost at once


def _judge(p: Pass) -> Pass:
    attempt = p.memory.attempt
    if attempt is None:
        return p
    p, attempt = _see_lost_workers(p, attempt)
    if attempt.stage is Stage.STOPPING:
        return p
    exits = gang_exits(p)
    if _finished(p, attempt, exits):
        return _stop(p, attempt, StopFor.DONE, "all ranks are done")
    if (leave_by := _leave_by(p, attempt, exits)) is not None:
        if p.now >= leave_by:
            return _stop(p, attempt, StopFor.DONE, "all steps are done; a rank that does not leave is stopped")
        p = p.wake(leave_by)
    p, hang = judge_hang(p)
    attempt = p.memory.attempt or attempt
    if attempt.stage is Stage.SAVING:
        return _judge_saving(p, attempt, exits, hang)
    if attempt.stage is Stage.LAUNCHING and p.now >= attempt.stage_since_ms + p.spec.startup_deadline_ms:
        attempt = replace(attempt, deadline_passed=True)
    failed = any(e.exit.code != 0 for e in exits) or _left_early(p, attempt, exits) or _refusals(p, attempt)
    if failed or attempt.lost or attempt.restarted or attempt.deadline_passed:
        return _fault(p, attempt)
    return _fault(p, replace(attempt, verdict=hang)) if hang is not None else p


def wake_for_deadline(p: Pass) -> Pass:
    """Look again when the stage that the attempt is in has lasted too long."""
    attempt = p.memory.attempt
    if attempt is None:
        return p
    match attempt.stage:
        case Stage.LAUNCHING:
            return p.wake(attempt.stage_since_ms + p.spec.startup_deadline_ms)
        case Stage.SAVING:
            return p.wake(_save_deadline(p, attempt))
        case Stage.STOPPING:
            return p.wake(_stop_deadline(p, attempt))
        case Stage.STEPPING:
            return p


def gang_exits(p: Pass) -> tuple[RankExit, ...]:
    attempt = p.memory.attempt
    if attempt is None:
        return ()
    alarms: dict[int, tuple[Alarm, ...]] = {}
    for alarm in p.obs.alarms:
        if alarm.attempt == attempt.number:
            alarms[alarm.rank] = (*alarms.get(alarm.rank, ()), alarm)
    return tuple(
        RankExit(rank.rank, node, rank.exit, alarms.get(rank.rank, ()))
        for node, rank in ranks_of(p)
        if rank.exit is not None
    )


def gang_fault(p: Pass, attempt: Attempt) -> GangFault:
    return GangFault(
        placement=attempt.placement,
        exits=gang_exits(p),
        lost=attempt.lost,
        restarted=attempt.restarted,
        refusals=_refusals(p, attempt),
        start_deadline_passed=attempt.deadline_passed,
        step=attempt.completed,
        total_steps=p.memory.total_steps,
        hang=attempt.verdict,
    )


def _refusals(p: Pass, attempt: Attempt) -> tuple[tuple[str, str], ...]:
    """(node, why) of each worker that will not run its share."""
    shares = ((worker.node, worker.gang(attempt.number)) for worker in p.obs.workers)
    return tuple((node, gang.refused) for node, gang in shares if gang is not None and gang.refused)


def gang_ended(p: Pass, attempt: Attempt) -> bool:
    """Whether no rank of the attempt can be alive where anybody would listen to it."""
    gone = {*attempt.lost, *attempt.restarted, *attempt.given_up}
    workers = p.obs.by_node()
    return all(_ended_on(attempt, workers.get(node)) for node in attempt.placement.nodes if node not in gone)


def _ended_on(attempt: Attempt, worker: Worker | None) -> bool:
    """A worker that heard no order to stop may have a rank yet to start."""
    if worker is None or not worker.connected:
        return False
    gang = worker.gang(attempt.number)
    if worker.order_key.startswith(stop_key(attempt.number)):
        return gang is None or gang.ended
    return gang is not None and gang.ended and len(gang.ranks) >= attempt.placement.ranks_per_node


def stop_key(attempt: int) -> str:
    return f"a{attempt}:stop"


def _see_lost_workers(p: Pass, attempt: Attempt) -> tuple[Pass, Attempt]:
    """A worker is lost once its connections are gone and its gang fails, or it stays away too long.

    One whose gang still completes steps is not lost, whatever its silence: the steps need its ranks. One that
    cannot end its ranks long after their grace is given up as well.
    """
    workers = p.obs.by_node()
    sessions = dict(attempt.sessions)
    stuck = attempt.stage is Stage.STOPPING and p.now >= _stop_deadline(p, attempt)
    unheard = dict(p.memory.unheard)
    ranks_failed = any(e.exit.code != 0 for e in gang_exits(p)) or attempt.stage is Stage.STOPPING
    returning = p.now < p.memory.watched_since_ms + p.spec.worker_lost_ms  # after an absence of ours they reconnect
    asked = attempt.stage is Stage.SAVING or attempt.stop_for is StopFor.SUSPEND  # then exits are no sign of a fault
    at_once = ranks_failed and not asked and not returning
    for node in attempt.placement.nodes:
        if node in attempt.lost or node in attempt.restarted or node in attempt.given_up:
            continue
        worker = workers.get(node)
        if worker is not None and worker.connected:
            if worker.session != sessions.get(node):
                attempt = replace(attempt, restarted=(*attempt.restarted, node))
            elif stuck and not _ended_on(attempt, worker):
                p = p.note(Reason.STOP_DEADLINE_PASSED, f"the ranks on {node} do not end; its worker is given up")
                p = _fence(p, node, attempt)
                attempt = replace(attempt, given_up=(*attempt.given_up, node))
            continue
        since = unheard.get(node, p.now)
        deadline = max(since, attempt.progressed_ms) + p.spec.worker_lost_ms
        if at_once or p.now >= deadline:
            attempt = replace(attempt, lost=(*attempt.lost, node))
            p = _fence(p, node, attempt)
        else:
            p = p.wake(deadline)
    return p.remember(attempt=attempt), attempt


def _stop_deadline(p: Pass, attempt: Attempt) -> int:
    return attempt.stage_since_ms + p.spec.stop_grace_ms + KILL_MS


def _fence(p: Pass, node: str, attempt: Attempt) -> Pass:
    session = attempt.session_of(node)
    if session is None or (node, session) in p.memory.fencing:
        return p
    return p.remember(fencing=(*p.memory.fencing, (node, session)))


def _finished(p: Pass, attempt: Attempt, exits: tuple[RankExit, ...]) -> bool:
    """Every token is trained: ranks left with 0, at the last step where one is known.

    A rank that leaves first makes its peers abort; such followers do not turn a finished run into a failed one.
    One that was asked to stop, and never said where its end is, has stopped.
    """
    if attempt.stage is Stage.SAVING and p.memory.total_steps is None:
        return False
    done = [e for e in exits if e.exit.code == 0]
    if not done:
        return False
    if not _reached_the_end(p, attempt):
        return False
    if all(e.exit.code == 0 for e in exits):
        return len(exits) == attempt.placement.layout.world_size
    return all(e.exit.code == 0 or e.is_follower for e in exits)


def _leave_by(p: Pass, attempt: Attempt, exits: tuple[RankExit, ...]) -> int | None:
    """At the last step some ranks have left with 0: when the others must have followed. None: nothing to wait for."""
    left = any(e.exit.code == 0 for e in exits) and all(e.exit.code == 0 or e.is_follower for e in exits)
    if not left or p.memory.total_steps is None or not _reached_the_end(p, attempt):
        return None
    return max(attempt.stage_since_ms, attempt.progressed_ms) + SAVE_BEFORE_STOP_MS


def _reached_the_end(p: Pass, attempt: Attempt) -> bool:
    total = p.memory.total_steps
    resumed_at = attempt.parent.step if attempt.parent else 0
    return total is None or max(attempt.completed, resumed_at) >= total


def _left_early(p: Pass, attempt: Attempt, exits: tuple[RankExit, ...]) -> bool:
    return any(e.exit.code == 0 for e in exits) and not _reached_the_end(p, attempt)


def _judge_saving(p: Pass, attempt: Attempt, exits: tuple[RankExit, ...], hang: Verdict | None) -> Pass:
    """Asked to save and stop. Whatever ends it now, what was to come after it comes."""
    all_left = len(exits) == attempt.placement.layout.world_size
    by_itself = all(e.exit.code in (0, 75) for e in exits)  # others may still write the save that all of them wait for
    late = p.now >= _save_deadline(p, attempt)
    if all_left or not by_itself or attempt.lost or attempt.restarted or late or hang is not None:
        return _stop(p, replace(attempt, verdict=hang), attempt.stop_for or StopFor.SUSPEND, "asked to stop")
    return p


def _save_deadline(p: Pass, attempt: Attempt) -> int:
    patience = SAVE_BEFORE_STOP_MS if attempt.spoke else SAVE_UNGREETED_MS + p.spec.stop_grace_ms
    return attempt.stage_since_ms + patience


def _stop(p: Pass, attempt: Attempt, why: StopFor, message: str) -> Pass:
    p = p.with_attempt(attempt, stage=Stage.STOPPING, stage_since_ms=p.now, stop_for=why)
    return p.say(Reason.STOPPING, f"attempt {attempt.number} ends: {message}")


def _fault(p: Pass, attempt: Attempt) -> Pass:
    """Open an incident, once for the whole gang; time since the last completed step was detection, in arrears.

    An attempt that completed no step was all in vain: its time is this incident's, and not the one's before it.
    """
    spent = p.memory.ledger.run
    if attempt.stage is Stage.LAUNCHING:
        spent = spent.since(p.memory.ledger.attempt)
    p = supersede_incident(p, spent)
    high = max(p.memory.high_step, attempt.completed)
    number = p.memory.incidents + 1
    incident = Incident(number, attempt.number, p.now, high, spent)
    book = p.memory.ledger
    if attempt.stage is Stage.STEPPING:
        silent = p.now - attempt.progressed_ms
        in_save = attempt.watch is not None and attempt.watch.phase == "save"
        stepping = Category.REPLAY if attempt.completed < p.memory.high_step else Category.TRAIN
        category = Category.SAVE if in_save else stepping
        book = ledger.moved(book, category, Category.DETECT, silent)
    p = p.remember(incidents=number, high_step=high, ledger=book)
    p = p.record(incident, incident)
    return _stop(p, attempt, StopFor.FAULT, "a fault was seen; what is left of it is stopped")


def supersede_incident(p: Pass, spent: Times, **changes: Any) -> Pass:
    """Close the open incident, if any, for the sake of what came between. `spent`: the run's ledger up to then."""
    incident = p.memory.incident
    if incident is None:
        return p
    return p.record(None, replace(closed(incident, Outcome.SUPERSEDED, spent, p.now), **changes))
