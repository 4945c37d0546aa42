"""Moving a run that trains, at a checkpoint and only where it pays: back to more racks, or off a slow node."""

from __future__ import annotations

from supervisor.core.avoiding import avoid
from supervisor.core.decision import Pass
from supervisor.core.memory import Attempt, Stage, StopFor
from supervisor.core.pace import current_ms, pace_of
from supervisor.core.paying import gained_ms, restart_ms
from supervisor.core.placement import Placement, place
from supervisor.core.reasons import Reason
from supervisor.core.spec import Growing
from supervisor.core.usable import usable


def see_idle_rack(p: Pass) -> Pass:
    """A whole rack that a smaller run could use: since when, and told once."""
    attempt = p.memory.attempt
    if attempt is None or attempt.stage is not Stage.STEPPING or len(attempt.placement.racks) >= p.spec.layout.racks:
        return p
    used = {rack.rack for rack in attempt.placement.racks}
    whole = (rack for rack, nodes in usable(p).items() if len(nodes) >= p.spec.layout.nodes_per_rack)
    idle = next((rack for rack in whole if rack not in used), "")
    if idle == attempt.idle_rack:
        return p
    p = p.with_attempt(attempt, idle_rack=idle, idle_since_ms=p.now)
    trains = f"attempt {attempt.number} trains on {attempt.placement.layout}"
    if not idle:
        return p.say(Reason.STEPPING, trains)
    text = f"rack {idle} is whole again and idle; {_intention(p)}"
    return p.say(Reason.STEPPING, f"{trains}; {text}").note(Reason.RACK_IDLE, text)


def _intention(p: Pass) -> str:
    run = p.spec.name
    match p.spec.growing:
        case Growing.NEVER:
            return f"marin-sup stop {run}, then marin-sup resume {run} uses it"
        case Growing.ALWAYS:
            return "the run grows back to it at a checkpoint"
        case Growing.WHEN_IT_PAYS:
            return "the run grows back to it at a checkpoint if that pays"


def move_at_checkpoint(p: Pass) -> Pass:
    """Right after a commit is the cheapest moment: the trainer saves once more at the next step; nothing is lost."""
    attempt = p.memory.attempt
    if attempt is None or attempt.stage is not Stage.STEPPING or attempt.stop_for is not None:
        return p
    newest = p.memory.checkpoints[-1].checkpoint if p.memory.checkpoints else None
    if newest is None or newest.attempt != attempt.number or newest.step == attempt.moved_at:
        return p
    p = p.with_attempt(attempt, moved_at=newest.step)  # considered once a checkpoint
    attempt = p.memory.attempt or attempt
    if reason := _grows(p, attempt):
        return _move(p, attempt, Reason.GROW, reason)
    if attempt.slow_node and (reason := _replaces(p, attempt)):
        p = avoid(p, attempt.slow_node, "it slowed the whole gang")
        return _move(p, p.memory.attempt or attempt, Reason.REPLACE_SLOW_NODE, reason)
    return p


def _move(p: Pass, attempt: Attempt, reason: Reason, why: str) -> Pass:
    p = p.with_attempt(attempt, stage=Stage.SAVING, stage_since_ms=p.now, stop_for=StopFor.MOVE)
    return p.say(reason, f"attempt {attempt.number} saves and moves: {why}").note(reason, why)


def steps_left(p: Pass, attempt: Attempt) -> int | None:
    return None if p.memory.total_steps is None else max(0, p.memory.total_steps - attempt.completed)


def _grows(p: Pass, attempt: Attempt) -> str:
    """Why it grows now; empty if it does not."""
    if not attempt.idle_rack or p.spec.growing is Growing.NEVER:
        return ""
    if p.now < attempt.idle_since_ms + p.spec.settle_ms:
        return ""
    larger = place(p.spec.layout, p.spec.min_racks, usable(p, ours=attempt), attempt.placement)
    now_racks = len(attempt.placement.racks)
    if not isinstance(larger, Placement) or len(larger.racks) <= now_racks:
        return ""
    what = f"back to {len(larger.racks)} racks with {attempt.idle_rack}"
    if p.spec.growing is Growing.ALWAYS:
        return what
    now_ms = current_ms(pace_of(p.memory, now_racks))
    if now_ms is None:
        return ""
    known = pace_of(p.memory, len(larger.racks))
    then_ms = known.best if known and known.best else now_ms * now_racks / len(larger.racks)
    gain = gained_ms(steps_left(p, attempt), now_ms, then_ms, p.memory.restarts_ms)
    if gain is None or gain <= 0:
        return ""
    return f"{what}: {gain / 1000:.0f} s are gained to the last step, a restart ({_cost(p)}) included"


def _replaces(p: Pass, attempt: Attempt) -> str:
    node = attempt.slow_node
    without = {rack: tuple(name for name in nodes if name != node) for rack, nodes in usable(p, ours=attempt).items()}
    better = place(p.spec.layout, p.spec.min_racks, without, attempt.placement)
    if not isinstance(better, Placement) or len(better.racks) < len(attempt.placement.racks):
        return ""
    pace = pace_of(p.memory, len(attempt.placement.racks))
    now_ms = current_ms(pace)
    if now_ms is None or pace is None or pace.best is None:
        return ""
    gain = gained_ms(steps_left(p, attempt), now_ms, pace.best, p.memory.restarts_ms)
    if gain is None or gain <= 0:
        return ""
    return f"off slow node {node}: {gain / 1000:.0f} s are gained to the last step, a restart ({_cost(p)}) included"


def _cost(p: Pass) -> str:
    return f"{restart_ms(p.memory.restarts_ms) / 1000:.1f} s"
