"""Starting the next attempt: on what, from what, under which number."""

from __future__ import annotations

from dataclasses import replace

from supervisor.core.avoiding import avoided, nodes_set_aside
from supervisor.core.closing import hold
from supervisor.core.decision import Pass
from supervisor.core.ladder import Refusal, acted, no_progress
from supervisor.core.ledger import Times
from supervisor.core.lineage import extend
from supervisor.core.memory import Attempt, CheckState, Phase, Stage, Watch
from supervisor.core.observation import Checkpoint
from supervisor.core.pace import forget_recent
from supervisor.core.placement import Placement, Shortfall, place
from supervisor.core.reasons import Reason
from supervisor.core.requests import suspension_wanted
from supervisor.core.usable import usable

WORKER_START_MS = 15_000  # how long a present node may take to bring up a worker before it is done without


def launch(p: Pass) -> Pass:
    p = _release_capacity_hold(p)
    memory = p.memory
    if memory.attempt or memory.hold or memory.phase is Phase.SUCCEEDED or suspension_wanted(p):
        return p
    placement = _place(p)
    late = _worth_waiting_for(p, placement)
    if late:
        p = p.wake(min(dict(memory.unheard)[node] for node in late) + WORKER_START_MS)
    elif ending := _ranks_of_earlier_attempts(p):
        return p.say(Reason.WAITING_FOR_WORKERS, f"waiting for ranks of an earlier attempt to end on {ending}")
    elif isinstance(placement, Shortfall):
        return hold(p, _lack_of_capacity(p, placement))
    if memory.check is CheckState.REFUSED:  # while an attempt trained; now it matters
        p = p.remember(check=CheckState.WANTED)
    if p.memory.check is CheckState.WANTED:
        return p.say(Reason.CHECKING_LAYOUTS, "the trainer is asked which layouts it accepts")
    if memory.found is None:
        return p.say(Reason.SURVEYING_CHECKPOINTS, "a worker looks which checkpoints can be restored")
    if refusal := no_progress(p):
        return hold(p, refusal)
    resume, problem = _choose_checkpoint(p)
    if problem is not None:
        return hold(p.remember(from_step=None), problem)
    if late or isinstance(placement, Shortfall):
        return p.say(Reason.WAITING_FOR_WORKERS, f"waiting for the workers on {', '.join(late)}")
    return _start(p, placement, resume)


def _place(p: Pass) -> Placement | Shortfall:
    """Without what is avoided, unless that would cost a rack."""
    spec, previous = p.spec, p.memory.placement
    everything = usable(p)
    with_all = place(spec.layout, spec.min_racks, everything, previous)
    avoid = avoided(p)
    if not avoid or isinstance(with_all, Shortfall):
        return with_all
    rest = {
        rack: () if rack in avoid else tuple(node for node in nodes if node not in avoid)
        for rack, nodes in everything.items()
    }
    without = place(spec.layout, spec.min_racks, rest, previous)
    fits = isinstance(without, Placement) and len(without.racks) == len(with_all.racks)
    return without if fits else with_all


def _ranks_of_earlier_attempts(p: Pass) -> str:
    """Where ranks live that are no attempt's (memory was lost, a worker was cut off): told to stop, not gone yet."""
    fencing = set(p.memory.fencing)
    return ", ".join(
        worker.node
        for worker in p.obs.workers
        if worker.connected and (worker.node, worker.session) not in fencing and not all(g.ended for g in worker.gangs)
    )


def _worth_waiting_for(p: Pass, placement: Placement | Shortfall) -> tuple[str, ...]:
    """Present nodes whose worker may come any moment, while a larger layout is still possible with them.

    A memory that has seen no attempt waits for all: one of them may know of an attempt that the memory lost.
    """
    first = p.memory.placement is None
    if isinstance(placement, Placement) and len(placement.racks) == p.spec.layout.racks and not first:
        return ()
    avoided = nodes_set_aside(p)
    unheard = dict(p.memory.unheard)
    return tuple(
        node.name
        for node in p.obs.nodes
        if node.present
        and node.name not in avoided
        and node.name in unheard
        and p.now - unheard[node.name] < WORKER_START_MS
    )


def _lack_of_capacity(p: Pass, shortfall: Shortfall) -> Refusal:
    aside = ", ".join(sorted(nodes_set_aside(p)))
    message = f"{shortfall}" + (f"; set aside after repeated faults: {aside}" if aside else "")
    way_out = "it goes on by itself once a whole rack is back (here: marin-sup chaos {run} revive-node NODE)"
    return Refusal(Reason.INSUFFICIENT_CAPACITY, message, way_out.format(run=p.spec.name))


def _release_capacity_hold(p: Pass) -> Pass:
    """Lack of capacity needs no person once the capacity is back."""
    held = p.memory.hold
    if held is None or held.reason is not Reason.INSUFFICIENT_CAPACITY:
        return p
    if isinstance(_place(p), Shortfall):
        return _wake_when_forgiven(p)
    return p.remember(hold=None).note(Reason.RESUMED, "a whole rack is back; the run goes on")


def _wake_when_forgiven(p: Pass) -> Pass:
    """A node that was set aside is placed again once its faults have left the window."""
    window = p.spec.node_faults.window_ms
    ends = [c.at_ms + window for c in p.memory.charges if c.node is not None and c.at_ms + window > p.now]
    return p.wake(min(ends)) if ends else p


def _choose_checkpoint(p: Pass) -> tuple[Checkpoint | None, Refusal | None]:
    """The newest restorable step, or the one that a person named; never silently from the beginning again."""
    found = p.memory.found or ()
    run = p.spec.name
    if p.memory.from_step is not None:
        return _named_checkpoint(p, p.memory.from_step)
    if found:
        return found[0].checkpoint, None
    if p.memory.progress_mark is None:
        return None, None
    message = f"checkpoint {p.memory.progress_mark} and all before it are damaged or gone; nothing can be restored"
    way_out = f"bring one back, then: marin-sup resume {run}; or start over: marin-sup resume {run} --from-step 0"
    return None, Refusal(Reason.CHECKPOINTS_GONE, message, way_out)


def _named_checkpoint(p: Pass, step: int) -> tuple[Checkpoint | None, Refusal | None]:
    if step == 0:
        return None, None
    found = p.memory.found or ()
    for candidate in found:
        if candidate.checkpoint.step == step:
            return candidate.checkpoint, None
    steps = ", ".join(str(c.checkpoint.step) for c in found[:20]) or "none"
    message = f"there is no restorable checkpoint of step {step}; there are: {steps}"
    return None, Refusal(
        Reason.STEP_NOT_FOUND, message, f"marin-sup resume {p.spec.name} --from-step N with one of these"
    )


def _start(p: Pass, placement: Placement, resume: Checkpoint | None) -> Pass:
    """Number, parent and placement are remembered before anything is ordered."""
    first = p.obs.worker(placement.nodes[0])
    if first is None or not first.offer:
        return p.say(Reason.WAITING_FOR_WORKERS, f"waiting for {placement.nodes[0]} to offer a coordinator port")
    number = p.memory.newest_attempt + 1
    placed = set(placement.nodes)
    sessions = tuple((w.node, w.session) for w in p.obs.workers if w.node in placed)
    attempt = Attempt(number, placement, resume, first.offer, sessions, p.now, Stage.LAUNCHING, p.now)
    attempt = replace(attempt, watch=Watch("", (0, 0, 0), p.now))
    before = p.memory.placement
    p = forget_recent(p).remember(
        attempt=attempt,
        newest_attempt=number,
        lineage=extend(p.memory.lineage, number, resume),
        from_step=None,
        progress_mark=resume if p.memory.from_step is not None else p.memory.progress_mark,
        ledger=replace(p.memory.ledger, attempt=Times()),
    )
    where = f"from {resume}" if resume else "from the beginning"
    message = f"attempt {number} starts on {placement.layout} ({', '.join(placement.nodes)}), {where}"
    p = p.say(Reason.ATTEMPT_STARTED, message).note(Reason.ATTEMPT_STARTED, message)
    incident = p.memory.incident
    if incident is None:
        return p
    changed = acted(incident, before, placement, resume)
    return p.record(changed, changed)
