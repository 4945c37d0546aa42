"""Which nodes an attempt may be placed on now."""

from __future__ import annotations

from supervisor.core.avoiding import nodes_set_aside
from supervisor.core.decision import Pass
from supervisor.core.memory import Attempt


def usable(p: Pass, ours: Attempt | None = None) -> dict[str, tuple[str, ...]]:
    """Per rack of the fleet, the nodes with a worker that answers and that are not set aside.

    Nodes that still run ranks are not, but for those of `ours`: the attempt that is to be moved.
    """
    aside = nodes_set_aside(p)
    mine = set(ours.placement.nodes) if ours else set()
    fencing = set(p.memory.fencing)
    answering = {
        w.node
        for w in p.obs.workers
        if w.connected and (w.node, w.session) not in fencing and (w.node in mine or all(g.ended for g in w.gangs))
    }
    racks: dict[str, list[str]] = {}
    for node in p.obs.nodes:
        nodes = racks.setdefault(node.rack, [])
        if node.name in answering and node.name not in aside:
            nodes.append(node.name)
    return {rack: tuple(nodes) for rack, nodes in racks.items()}
