"""What the run itself shows: progress, commits, and which workers are heard. Nothing is judged here."""

from __future__ import annotations

from dataclasses import replace

from supervisor.core.decision import Pass
from supervisor.core.lineage import Candidate, chain
from supervisor.core.memory import MAX_CHECKPOINTS, Stage
from supervisor.core.observation import Checkpoint, Rank
from supervisor.core.reasons import Reason

MAX_RESTARTS = 9


def ranks_of(p: Pass) -> tuple[tuple[str, Rank], ...]:
    """(node, rank) of every rank of the current attempt that a worker of that attempt reports."""
    attempt = p.memory.attempt
    if attempt is None:
        return ()
    sessions = dict(attempt.sessions)
    found: list[tuple[str, Rank]] = []  # plain loops: every pass walks over all ranks several times
    for worker in p.obs.workers:
        if worker.session == sessions.get(worker.node) and (gang := worker.gang(attempt.number)) is not None:
            found.extend([(worker.node, rank) for rank in gang.ranks])
    return tuple(found)


def hear_workers(p: Pass) -> Pass:
    """Since when each node of the fleet, and of the attempt, has had no worker that syncs."""
    heard = {worker.node for worker in p.obs.workers if worker.connected}
    placed = p.memory.attempt.placement.nodes if p.memory.attempt else ()
    names = dict.fromkeys((*(node.name for node in p.obs.nodes), *placed))
    before = dict(p.memory.unheard)
    unheard = tuple((name, before.get(name, p.now)) for name in names if name not in heard)
    newest = max((worker.newest_attempt for worker in p.obs.workers), default=0)
    return p.remember(unheard=unheard, newest_attempt=max(p.memory.newest_attempt, newest))


def see_progress(p: Pass) -> Pass:
    """Completed steps are the only proof of life."""
    attempt = p.memory.attempt
    if p.obs.total_steps is not None:
        p = p.remember(total_steps=p.obs.total_steps)
    if attempt is None:
        return p
    if p.obs.contract_spoken and not attempt.spoke:
        attempt = replace(attempt, spoke=True)
        p = p.with_attempt(attempt)
    completed = max((rank.completed for _, rank in ranks_of(p)), default=0)
    if completed <= attempt.completed:
        return p
    attempt = replace(attempt, completed=completed, progressed_ms=p.now)
    if attempt.stage is Stage.LAUNCHING:
        p = p.remember(restarts_ms=(*p.memory.restarts_ms, p.now - attempt.started_ms)[-MAX_RESTARTS:])
        attempt = replace(attempt, stage=Stage.STEPPING, stage_since_ms=p.now)
        p = p.note(Reason.STEPPING, f"attempt {attempt.number} completed its first step, {completed}")
    return p.with_attempt(attempt)


def see_commits(p: Pass) -> Pass:
    """Commits of the current attempt; whatever a closed attempt commits later is ignored."""
    attempt = p.memory.attempt
    if attempt is None:
        return p
    ours = [c.checkpoint.step for c in p.memory.checkpoints if c.checkpoint.attempt == attempt.number]
    newest = max(ours, default=-1)  # older ones may have been forgotten already, and are no news
    new = sorted({c for c in p.obs.commits if c.attempt == attempt.number and c.step > newest}, key=lambda c: c.step)
    if not new:
        return p
    for checkpoint in new:
        p = p.note(Reason.CHECKPOINT_COMMITTED, f"checkpoint {checkpoint} is committed")
    kept = (*p.memory.checkpoints, *(Candidate(checkpoint, False) for checkpoint in new))
    return p.remember(checkpoints=kept[-MAX_CHECKPOINTS:], progress_mark=new[-1])


def retained(p: Pass) -> tuple[Checkpoint, ...]:
    """What retention keeps: the newest on the lineage, every so many steps, and what the attempt started from."""
    limits = dict(chain(p.memory.lineage))
    on_lineage = sorted(
        (
            c.checkpoint
            for c in p.memory.checkpoints
            if c.checkpoint.attempt in limits
            and ((limit := limits[c.checkpoint.attempt]) is None or c.checkpoint.step <= limit)
        ),
        key=lambda c: c.step,
        reverse=True,
    )
    every = p.spec.keep_every_steps
    kept = set(on_lineage[: p.spec.keep_newest])
    kept |= {c for c in on_lineage if every and c.step % every == 0}
    attempt = p.memory.attempt
    if attempt is not None and attempt.parent is not None:
        kept.add(attempt.parent)
    return tuple(sorted(kept, key=lambda c: (c.attempt, c.step)))
