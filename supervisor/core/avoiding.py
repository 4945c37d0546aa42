"""Which nodes and racks placement does without while it can, and what repeated hangs say about them.

A second unexplained hang on other nodes points at the software, one on the same node at the node; where no node can
be named, racks are bisected: half of the suspects give way to spare racks until the hang moves out with one of them.
"""

from __future__ import annotations

from dataclasses import replace

from supervisor.core import budget
from supervisor.core.decision import Pass
from supervisor.core.memory import Attempt, Avoided, Hang, Stage
from supervisor.core.reasons import Reason
from supervisor.core.spec import Cause
from supervisor.core.verdict import Verdict

MAX_HANGS = 32
MAX_AVOIDED = 64
REMEMBERED_MS = 24 * 3_600_000


def remember_hang(p: Pass, verdict: Verdict, attempt: Attempt) -> tuple[Pass, Verdict]:
    """The verdict in the light of the hangs before it, and what to do without from now on."""
    racks = tuple(rack.rack for rack in attempt.placement.racks)
    before = [hang for hang in p.memory.hangs if p.now - hang.at_ms < REMEMBERED_MS]
    p = p.remember(hangs=(*before, Hang(p.now, verdict.node, racks))[-MAX_HANGS:])
    if verdict.node is not None:
        return _seen_before(p, verdict, verdict.node, before, attempt)
    if verdict.blame == "unknown":
        return _bisect(p, racks, before), verdict
    return p, verdict


def _seen_before(p: Pass, verdict: Verdict, node: str, before: list[Hang], attempt: Attempt) -> tuple[Pass, Verdict]:
    named = [hang.node for hang in before if hang.node is not None]
    if node in named:
        p = avoid(p, node, "it hung twice")
        because = f"{verdict.because}; it is not the first time on {node}"
        return p, replace(verdict, cause=Cause.HARDWARE, because=because, confidence=max(verdict.confidence, 0.8))
    if attempt.stage is Stage.LAUNCHING:
        return avoid(p, node, "it hung while the run recovered"), verdict
    if named:
        because = f"{verdict.because}; the last hang was on {named[-1]}, so the software is the suspect"
        return p, replace(verdict, cause=Cause.SOFTWARE, because=because, confidence=min(verdict.confidence, 0.6))
    return p, verdict


def _bisect(p: Pass, racks: tuple[str, ...], before: list[Hang]) -> Pass:
    """The first such hang is forgiven. From the second on, what hung before and now are the suspects."""
    unnamed = [hang for hang in before if hang.node is None]
    if not unnamed:
        return p
    pool = p.memory.suspects or unnamed[-1].racks
    suspects = tuple(rack for rack in pool if rack in racks)
    if len(suspects) < 2:
        for rack in suspects:
            p = avoid(p, rack, "it was there in every hang that nothing else explains")
        return p.remember(suspects=())
    for rack in suspects[: len(suspects) // 2]:
        p = avoid(p, rack, "one of the racks behind hangs that nothing else explains")
    return p.remember(suspects=suspects)


def avoid(p: Pass, name: str, why: str) -> Pass:
    """Place nothing on this node or rack for the window of `nodeFaults`, unless too little is left without it."""
    kept = tuple(one for one in p.memory.avoided if one.name != name and one.until_ms > p.now)
    until = p.now + p.spec.node_faults.window_ms
    p = p.remember(avoided=(*kept, Avoided(name, until, why))[-MAX_AVOIDED:])
    return p.note(Reason.AVOIDED, f"{name} is avoided where that costs no rack: {why}")


def avoided(p: Pass) -> frozenset[str]:
    return frozenset(one.name for one in p.memory.avoided if one.until_ms > p.now)


def nodes_set_aside(p: Pass) -> frozenset[str]:
    """Nodes that were blamed too often: no attempt is placed on them, whatever that costs."""
    return budget.set_aside(p.memory.charges, p.spec.node_faults, p.now)
