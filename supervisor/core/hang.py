"""Naming who is behind a hang. One rule a way to hang; the first that speaks wins; silence is "unknown", said plainly.

Judged by steps entered and completed and by what the processes show, never by heartbeats: a rank that hangs goes on
sending those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

from supervisor.core.deadlines import STEP
from supervisor.core.observation import Rank, RankEvidence, RankState
from supervisor.core.placement import Placement
from supervisor.core.reasons import Reason
from supervisor.core.spec import Cause
from supervisor.core.verdict import Verdict
from supervisor.core.waiting import STARTING

IDLE_CPU, BUSY_CPU = 0.05, 0.5  # cores: a process that waits, and one that spins
MAX_EVIDENCE = 8
MAX_FRAMES = 6  # of a stack that are told


@dataclass(frozen=True, slots=True)
class Stuck:
    """One living rank of a gang that stands still."""

    rank: Rank
    node: str
    rack: str
    seen: RankEvidence | None = None

    @property
    def state(self) -> str:
        return self.seen.state if self.seen else ""

    @property
    def cpu(self) -> float | None:
        return self.seen.cpu if self.seen else None


@dataclass(frozen=True, slots=True)
class Standstill:
    """A gang in which nothing moves. `phase`: the one that its deadline belongs to. `silent_ms`: for how long."""

    phase: str
    silent_ms: int
    ranks: tuple[Stuck, ...]

    @property
    def entered(self) -> int:
        return max((one.rank.entered for one in self.ranks), default=0)


Rule = Callable[[Standstill], Verdict | None]


def standstill(
    phase: str, silent_ms: int, ranks: Iterable[tuple[str, Rank]], placement: Placement, seen: Iterable[RankEvidence]
) -> Standstill:
    """Everything that is known of it, put together."""
    evidence = {one.rank: one for one in seen}
    rack_of = {node: rack.rack for rack in placement.racks for node in rack.nodes}
    stuck = tuple(
        Stuck(rank, node, rack_of.get(node, ""), evidence.get(rank.rank))
        for node, rank in ranks
        if rank.state is not RankState.EXITED
    )
    return Standstill(phase, silent_ms, stuck)


def name_culprit(still: Standstill) -> Verdict:
    """The verdict on a confirmed hang."""
    return next((verdict for rule in RULES if (verdict := rule(still))), _unknown(still))


def settled(still: Standstill) -> bool:
    """Whether the evidence is such that no more patience can change the verdict: a stopped process does not go on."""
    return _stopped(still) is not None


def _stopped(still: Standstill) -> Verdict | None:
    found = [one for one in still.ranks if one.state in ("T", "t")]
    if not found:
        return None
    return _blame(still, found, Reason.RANK_STOPPED, "is stopped (SIGSTOP, or a debugger)", 0.95)


def _blocked(still: Standstill) -> Verdict | None:
    """Uninterruptible sleep: it waits in the kernel for a device or a file system."""
    found = [one for one in still.ranks if one.state == "D"]
    if not found or len(found) == len(still.ranks):
        return None
    return _blame(still, found, Reason.RANK_BLOCKED, "is blocked in the kernel (state D)", 0.8)


def _in_another_phase(still: Standstill) -> Verdict | None:
    """Some are in the phase that the deadline belongs to, the others are further, or back at their steps, and wait."""
    if still.phase in (STEP, "exit"):
        return None
    found = [one for one in still.ranks if one.rank.phase == still.phase]
    if not found or len(found) == len(still.ranks):
        return None
    what = f"is still in phase {still.phase or 'import'} while its peers wait for it"
    return _blame(still, found, Reason.RANK_IN_ANOTHER_PHASE, what, 0.7)


def _late(still: Standstill) -> Verdict | None:
    """The ranks that have not entered the step in which all others wait."""
    if any(one.rank.phase in STARTING for one in still.ranks):
        return None
    found = [one for one in still.ranks if one.rank.entered < still.entered]
    if not found or len(found) == len(still.ranks):
        return None
    what = f"has not entered step {still.entered}, in which its peers wait"
    busy = [one for one in found if one.cpu is not None and one.cpu >= BUSY_CPU]
    if len(busy) == len(found):
        what += "; it spins"
    return _blame(still, found, Reason.RANK_LATE, what, 0.85)


def _rack_behind(still: Standstill) -> Verdict | None:
    """All have entered, and one rack has not finished what the others have."""
    furthest = max((one.rank.completed for one in still.ranks), default=0)
    behind = {one.rack for one in still.ranks if one.rank.completed < furthest}
    whole = {rack for rack in behind if all(o.rank.completed < furthest for o in still.ranks if o.rack == rack)}
    racks = {one.rack for one in still.ranks}
    if len(behind) != 1 or behind != whole or len(racks) < 2:
        return None
    rack = next(iter(behind))
    because = f"rack {rack} has not finished step {furthest}, which all other racks have"
    return Verdict(Cause.HARDWARE, f"rack {rack}", Reason.RACK_BEHIND, because, 0.6, evidence(still))


def _idle(still: Standstill) -> Verdict | None:
    """It uses no CPU while its peers spin in the collective that waits for it."""
    known = [one for one in still.ranks if one.cpu is not None]
    idle = [one for one in known if one.cpu is not None and one.cpu < IDLE_CPU]
    others = [one.cpu for one in known if one.cpu is not None and one.cpu >= IDLE_CPU]
    if not idle or len(idle) >= len(known) / 2 or median(others) < BUSY_CPU:
        return None
    return _blame(still, idle, Reason.RANK_IDLE, "uses no CPU while its peers spin", 0.6)


RULES: tuple[Rule, ...] = (  # order is part of the meaning
    _stopped,
    _blocked,
    _in_another_phase,
    _late,
    _rack_behind,
    _idle,
)


def _unknown(still: Standstill) -> Verdict:
    seconds = f"{still.silent_ms / 1000:.1f} s"
    if still.phase == STEP:
        because = f"every rank has entered step {still.entered} and none has finished it for {seconds}; who is unknown"
        return Verdict(Cause.UNKNOWN, "unknown", Reason.HUNG_IN_STEP, because, 0.3, evidence(still))
    because = f"nothing has moved in phase {still.phase or 'import'} for {seconds}; who is unknown"
    return Verdict(Cause.UNKNOWN, "unknown", Reason.HUNG_IN_PHASE, because, 0.3, evidence(still))


def _blame(still: Standstill, found: list[Stuck], reason: Reason, what: str, confidence: float) -> Verdict:
    """One rank, all of one node, all of one rack, or several that have nothing in common."""
    nodes = list(dict.fromkeys(one.node for one in found))
    racks = list(dict.fromkeys(one.rack for one in found))
    first = found[0]
    who = f"rank {first.rank.rank} on {first.node}"
    if len(found) > 1:
        who = f"{who} (and {len(found) - 1} more)"
    because = f"{who} {what}"
    if len(nodes) == 1:
        return Verdict(
            Cause.UNKNOWN, f"node {first.node}", reason, because, confidence, evidence(still, found), first.node
        )
    if len(racks) == 1:
        return Verdict(Cause.UNKNOWN, f"rack {racks[0]}", reason, because, confidence, evidence(still, found))
    return Verdict(Cause.UNKNOWN, "unknown", reason, because, confidence / 2, evidence(still, found))


def evidence(still: Standstill, found: Iterable[Stuck] = ()) -> tuple[str, ...]:
    """The blamed first, then their peers in groups of equal stacks, the smallest group, so the odd one, first."""
    blamed = list(found)
    lines = [_told(one) for one in blamed[:3]]
    rest = [one for one in still.ranks if one not in blamed]
    groups: dict[tuple[str, ...], list[Stuck]] = {}
    for one in rest:
        groups.setdefault(one.seen.stack if one.seen else (), []).append(one)
    for stack, members in sorted(groups.items(), key=lambda item: len(item[1])):
        who = f"rank {members[0].rank.rank}" if len(members) == 1 else f"{len(members)} ranks"
        entered = sorted({one.rank.entered for one in members})
        steps = f"{entered[0]}" if len(entered) == 1 else f"{entered[0]} to {entered[-1]}"
        where = f", at {_frames(stack)}" if stack else ", no Python stack"
        lines.append(f"{who}: step {steps} entered{where}")
    return tuple(lines[:MAX_EVIDENCE])


STATES = {"R": "running", "S": "asleep", "D": "blocked in the kernel", "T": "stopped", "t": "traced", "Z": "a zombie"}


def _told(one: Stuck) -> str:
    parts = [f"phase {one.rank.phase or 'unknown'}", f"step {one.rank.entered} entered"]
    if one.seen is not None:
        if one.state:
            parts.append(STATES.get(one.state, f"state {one.state}"))
        if one.cpu is not None:
            parts.append(f"{one.cpu:.2f} cores used")
        parts.append(f"at {_frames(one.seen.stack)}" if one.seen.stack else one.seen.error or "no Python stack")
    return f"rank {one.rank.rank} on {one.node}: {', '.join(parts)}"


def _frames(stack: tuple[str, ...]) -> str:
    return " < ".join(stack[:MAX_FRAMES])
