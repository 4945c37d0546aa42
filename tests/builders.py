"""Builders with defaults: what a case does not say does not matter to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from supervisor.core.decide import first_memory
from supervisor.core.gang_fault import GangFault, RankExit
from supervisor.core.memory import Memory
from supervisor.core.observation import Alarm, Exit, Node, Worker
from supervisor.core.placement import PlacedRack, Placement
from supervisor.core.spec import Layout, Spec

START_MS = 1_800_000_000_000  # an epoch in milliseconds, as the driver hands it in


def fleet(racks: int = 2, nodes: int = 3) -> tuple[Node, ...]:
    """Nodes r0n0, r0n1, ... of racks r0, r1, ..."""
    return tuple(Node(f"r{rack}n{node}", f"r{rack}") for rack in range(racks) for node in range(nodes))


def spec(racks: int = 2, nodes_per_rack: int = 2, ranks_per_node: int = 1, min_racks: int = 1, **changes: Any) -> Spec:
    return Spec("hero", Layout(racks, nodes_per_rack, ranks_per_node), min_racks, **changes)


def memory(**changes: Any) -> Memory:
    return replace(first_memory(START_MS), **changes)


def workers(nodes: tuple[Node, ...], **changes: Any) -> tuple[Worker, ...]:
    """An idle worker on each node, connected, with a coordinator port on offer."""
    shown: dict[str, Any] = {"connected": True, "offer": "host:1", "order_key": "standby"} | changes
    return tuple(Worker(node.name, f"{node.name}-1", **shown) for node in nodes)


def placement(*racks: str, ranks_per_node: int = 1) -> Placement:
    """`placement("r0: r0n0 r0n1", "r1: r1n0 r1n1")`."""
    parts = [rack.split(":") for rack in racks]
    return Placement(tuple(PlacedRack(name, tuple(nodes.split())) for name, nodes in parts), ranks_per_node)


TWO_RACKS = placement("r0: r0n0 r0n1", "r1: r1n0 r1n1")


def ended(
    rank: int = 0, code: int | None = None, signal: int | None = None, says: str = "", at: int = 0, **more: Any
) -> RankExit:
    """A rank's end. `alarm`: the kind that it raised; `by_us`: after our own TERM."""
    alarm, by_us = more.get("alarm"), more.get("by_us", False)
    alarms = (Alarm(1, rank, alarm, more.get("message", "")),) if alarm else ()
    return RankExit(rank, TWO_RACKS.node_of(rank), Exit(code, signal, by_us, at, says), alarms)


def follower(rank: int, at: int = 0) -> RankExit:
    return ended(rank, code=75, says="gloo: Connection reset by peer", at=at)


def fault(*exits: RankExit, **changes: Any) -> GangFault:
    return GangFault(TWO_RACKS, exits, **changes)
