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
from supervisor.core.judging import stop_key
from supervisor.core.memory import Attempt, CheckState, Phase, Stage, StopFor
from supervisor.core.placement import PlacedRank
from supervisor.core.preparing import check_id, collect_id, set_aside_id, survey_id
from supervisor.core.reasons import Reason
from supervisor.core.watching import retained

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
    steward = _steward(p)
    intents = _intents(p)
    for worker in p.obs.workers:
        if not worker.connected:
            continue
        gang = intents.get((worker.node, worker.session))
        order = _order_for(gang, tasks(p) if worker.node == steward else ())
        if worker.order_key != order.key:
            p = p.ask(SendOrder(worker.node, order))
    return p


def tasks(p: Pass) -> tuple[Task, ...]:
    """Everything that one worker is to do now for the whole run."""
    memory = p.memory
    wanted: list[Task] = []
    if memory.check is CheckState.WANTED and memory.phase is not Phase.SUCCEEDED:
        wanted.append(Task(check_id(p), TaskKind.CHECK, layouts=p.spec.allowed_layouts()))
    if memory.attempt is None and memory.found is None and memory.phase is not Phase.SUCCEEDED and not memory.hold:
        wanted.append(Task(survey_id(p), TaskKind.SURVEY))
    wanted += [Task(set_aside_id(c), TaskKind.SET_ASIDE, checkpoint=c) for c in memory.to_set_aside[:8]]
    newest = memory.checkpoints[-1].checkpoint if memory.checkpoints else None
    if newest and newest != memory.collected and memory.attempt and memory.attempt.number == newest.attempt:
        current = memory.attempt.number
        wanted.append(Task(collect_id(newest), TaskKind.COLLECT, keep=retained(p), current=current))
    return tuple(wanted)


def _steward(p: Pass) -> str | None:
    """One worker does the work that belongs to all; the first that trains, else the first of the fleet."""
    placement = p.memory.attempt.placement if p.memory.attempt else p.memory.placement
    preferred = placement.nodes if placement else ()
    connected = dict.fromkeys(worker.node for worker in p.obs.workers if worker.connected)
    return next((node for node in preferred if node in connected), next(iter(connected), None))


def _order_for(gang: GangIntent | None, work: tuple[Task, ...]) -> WorkerOrder:
    suffix = "".join(f"+{task.id}" for task in work)
    if gang is None:
        return WorkerOrder(f"standby{suffix}", None, work)
    if gang.command is Command.STOP:
        return WorkerOrder(f"{stop_key(gang.attempt)}{suffix}", gang, work)
    control = f":save{gang.save}" if gang.save else ""
    control += ":stop" if gang.stop else ""
    return WorkerOrder(f"a{gang.attempt}:run{control}{suffix}", gang, work)


def _intents(p: Pass) -> dict[tuple[str, str], GangIntent]:
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
        stop=attempt.stage is Stage.SAVING or attempt.stop_for is StopFor.SUSPEND,
        grace_ms=_grace(p, attempt),
    )


def _grace(p: Pass, attempt: Attempt) -> int:
    if attempt.stop_for is StopFor.FAULT:
        return min(FAULT_GRACE_MS, p.spec.stop_grace_ms)
    return p.spec.stop_grace_ms
