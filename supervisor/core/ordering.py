"""From memory to what each worker is to do now. Level-triggered: the whole order each time, sent only if it differs."""

from __future__ import annotations

from supervisor.core.actions import (
    Command,
    FenceWorker,
    GangIntent,
    SendOrder,
    StartWorker,
    Task,
    TaskKind,
    WorkerOrder,
)
from supervisor.core.decision import Pass
from supervisor.core.foresight import preparation_wanted
from supervisor.core.judging import stop_key
from supervisor.core.memory import Attempt, CheckState, Phase, Stage, StopFor
from supervisor.core.observation import Worker
from supervisor.core.placement import PlacedRank
from supervisor.core.preparing import check_id, collect_id, set_aside_id, survey_id
from supervisor.core.reasons import Reason
from supervisor.core.suspecting import evidence_wanted
from supervisor.core.watching import retained

STANDBY = "standby"
FAULT_GRACE_MS = 2_000  # a gang that has lost a rank cannot save: what is left of it gets little time


def tend_workers(p: Pass) -> Pass:
    """Fence the workers that were given up, and start one wherever a present node has none."""
    p = _fence_workers(p)
    if p.memory.phase is Phase.SUCCEEDED:
        return p
    fencing = {node for node, _ in p.memory.fencing}
    workers = p.obs.by_node()
    for node in p.obs.nodes:
        worker = workers.get(node.name)
        if node.present and node.name not in fencing and (worker is None or not worker.connected):
            p = p.ask(StartWorker(node.name))
    return p


def _fence_workers(p: Pass) -> Pass:
    there = {(w.node, w.session) for w in p.obs.workers}
    for node, session in p.memory.fencing:
        if (node, session) in there:
            p = p.ask(FenceWorker(node, session))
        else:
            p = p.note(Reason.WORKER_FENCED, f"the lost worker on {node} is gone for good")
    return p.remember(fencing=tuple(fence for fence in p.memory.fencing if fence in there))


def send_orders(p: Pass) -> Pass:
    """To every worker that acts on another order than the one that is due."""
    steward = _steward(p)
    attempt = p.memory.attempt
    placed = set(attempt.sessions) if attempt else set()
    share = _share_key(attempt) if attempt else ""
    look = _look(p)
    due: list[tuple[Worker, str, tuple[Task, ...]]] = []
    for worker in p.obs.workers:
        work = tasks(p) if worker.node == steward else ()
        if look is not None and (worker.node, worker.session) in placed:
            work = (*work, look)
        key = share if (worker.node, worker.session) in placed else STANDBY
        key += "".join(f"+{task.id}" for task in work)
        if worker.connected and worker.order_key != key:
            due.append((worker, key, work))
    if not due:
        return p
    shares = _shares(p)
    return p.ask(*(SendOrder(w.node, WorkerOrder(key, shares.get((w.node, w.session)), work)) for w, key, work in due))


def tasks(p: Pass) -> tuple[Task, ...]:
    """Everything that one worker is to do now for the whole run."""
    memory = p.memory
    wanted: list[Task] = []
    if memory.check is CheckState.WANTED and memory.phase is not Phase.SUCCEEDED:
        wanted.append(Task(check_id(p), TaskKind.CHECK, layouts=p.spec.allowed_layouts()))
    if preparation := preparation_wanted(p):
        wanted.append(preparation)
    if memory.attempt is None and memory.found is None and memory.phase is not Phase.SUCCEEDED and not memory.hold:
        wanted.append(Task(survey_id(p), TaskKind.SURVEY))
    wanted += [Task(set_aside_id(c), TaskKind.SET_ASIDE, checkpoint=c) for c in memory.to_set_aside[:8]]
    if memory.collecting is not None:
        what = collect_id(memory.collecting)
        wanted.append(Task(what, TaskKind.COLLECT, keep=retained(p), current=memory.collecting.attempt))
    return tuple(wanted)


def _look(p: Pass) -> Task | None:
    """What every worker of a gang that stands still is to look at."""
    wanted = evidence_wanted(p)
    attempt = p.memory.attempt
    return Task(wanted, TaskKind.EVIDENCE, attempt=attempt.number) if wanted and attempt else None


def _steward(p: Pass) -> str | None:
    """One worker does the work that belongs to all; the first that trains, else the first of the fleet."""
    placement = p.memory.attempt.placement if p.memory.attempt else p.memory.placement
    preferred = placement.nodes if placement else ()
    connected = dict.fromkeys(worker.node for worker in p.obs.workers if worker.connected)
    return next((node for node in preferred if node in connected), next(iter(connected), None))


def _share_key(attempt: Attempt) -> str:
    if attempt.stage is Stage.STOPPING:
        return stop_key(attempt.number)
    save = f":save{attempt.save}" if attempt.save else ""
    return f"a{attempt.number}:run{save}" + (":stop" if _asked_to_stop(attempt) else "")


def _asked_to_stop(attempt: Attempt) -> bool:
    """By a request that the trainer heeds, and so saves first; a stop by TERM is a command."""
    return attempt.stage is Stage.SAVING or attempt.stop_for in (StopFor.SUSPEND, StopFor.MOVE)


def _shares(p: Pass) -> dict[tuple[str, str], GangIntent]:
    """By (node, session): the worker that was placed, never one that came later, gets its share of the attempt."""
    attempt = p.memory.attempt
    if attempt is None:
        return {}
    shares: dict[str, list[PlacedRank]] = {}
    for rank in attempt.placement.ranks():
        shares.setdefault(rank.node, []).append(rank)
    return {
        (node, session): _intent(p, attempt, tuple(shares[node]))
        for node, session in attempt.sessions
        if node in shares
    }


def _intent(p: Pass, attempt: Attempt, ranks: tuple[PlacedRank, ...]) -> GangIntent:
    stopping = attempt.stage is Stage.STOPPING
    return GangIntent(
        attempt=attempt.number,
        command=Command.STOP if stopping else Command.RUN,
        ranks=ranks,
        layout=attempt.placement.layout,
        coordinator=attempt.coordinator,
        resume=attempt.parent,
        save=attempt.save,
        stop=_asked_to_stop(attempt),
        grace_ms=_grace(p, attempt),
        skips=p.memory.skips,
    )


def _grace(p: Pass, attempt: Attempt) -> int:
    if attempt.verdict is not None:  # it hangs, and its stacks are known: TERM would only take time
        return 0
    if attempt.stop_for in (StopFor.FAULT, StopFor.ROLLBACK):
        return min(FAULT_GRACE_MS, p.spec.stop_grace_ms)
    return p.spec.stop_grace_ms
