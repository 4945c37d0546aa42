"""Which nodes an attempt runs on: whole racks only, ranks contiguous per rack, sticky, recomputed from what lives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from supervisor.core.spec import Layout


@dataclass(frozen=True, slots=True)
class PlacedRack:
    """`nodes` in slot order: a spare takes the slot of the node that it replaces."""

    rack: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlacedRank:
    rank: int
    node: str
    slot: int
    rack_ordinal: int


@dataclass(frozen=True, slots=True)
class Placement:
    racks: tuple[PlacedRack, ...]
    ranks_per_node: int

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(node for rack in self.racks for node in rack.nodes)

    @property
    def layout(self) -> Layout:
        return Layout(len(self.racks), len(self.racks[0].nodes) if self.racks else 0, self.ranks_per_node)

    def ranks(self) -> tuple[PlacedRank, ...]:
        """All ranks in order: rack after rack, node after node, slot after slot."""
        placed: list[PlacedRank] = []
        for ordinal, rack in enumerate(self.racks):
            for node in rack.nodes:
                for slot in range(self.ranks_per_node):
                    placed.append(PlacedRank(len(placed), node, slot, ordinal))
        return tuple(placed)

    def node_of(self, rank: int) -> str:
        return self.nodes[rank // self.ranks_per_node]


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why nothing can be placed: a line for each rack that is not whole."""

    whole_racks: int
    needed_racks: int
    missing: tuple[str, ...]

    def __str__(self) -> str:
        detail = "; ".join(self.missing) or "the fleet has no rack"
        return f"{self.needed_racks} whole rack(s) needed, {self.whole_racks} found: {detail}"


def place(
    layout: Layout, min_racks: int, usable: Mapping[str, tuple[str, ...]], previous: Placement | None
) -> Placement | Shortfall:
    """Place as many racks as `layout` asks for, at least `min_racks`, on the `usable` nodes of each rack.

    Racks and nodes of the `previous` placement keep their places where they still can: what does not move
    keeps its data, its caches and its neighbours.
    """
    held = {rack.rack: rack.nodes for rack in previous.racks} if previous else {}
    whole = [
        PlacedRack(rack, _fill(layout.nodes_per_rack, nodes, held.get(rack, ())))
        for rack, nodes in _stickiest_first(usable, tuple(held))
        if len(nodes) >= layout.nodes_per_rack
    ]
    if len(whole) < min_racks:
        return Shortfall(len(whole), min_racks, tuple(_lacks(layout, usable)))
    return Placement(tuple(whole[: layout.racks]), layout.ranks_per_node)


def _stickiest_first(
    usable: Mapping[str, tuple[str, ...]], held: tuple[str, ...]
) -> Iterable[tuple[str, tuple[str, ...]]]:
    order = {rack: position for position, rack in enumerate(held)}
    return sorted(usable.items(), key=lambda item: order.get(item[0], len(order)))


def _fill(count: int, usable: tuple[str, ...], held: tuple[str, ...]) -> tuple[str, ...]:
    kept = held[:count]
    spares = [node for node in usable if node not in kept]
    slots = [node if node in usable else spares.pop(0) for node in kept if node in usable or spares]
    return tuple(slots + spares[: count - len(slots)])


def _lacks(layout: Layout, usable: Mapping[str, tuple[str, ...]]) -> Iterable[str]:
    for rack, nodes in usable.items():
        if len(nodes) < layout.nodes_per_rack:
            yield f"rack {rack} has {len(nodes)} of {layout.nodes_per_rack} nodes"
