"""Where a run may train: the fleet that it draws nodes from, and the layout that it wants."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from supervisor.api.metadata import label_keys
from supervisor.api.rules import Rule
from supervisor.api.section import Effect, LabelKey, LabelValue, Section, described


class Fleet(Section):
    """Which nodes may be used, and what each of them has."""

    rules = (label_keys("nodeSelector"),)

    node_selector: Annotated[dict[str, LabelValue], Field(max_length=32)] = described(
        "Only nodes with all these labels are used; none means every node. Unused on one machine.",
        Effect.NEXT_ATTEMPT,
        default_factory=dict,
    )
    rack_label: LabelKey | None = described(
        "The node label whose value names a node's rack. Unused on one machine, where --fleet says the racks.",
        Effect.REFUSED,
        None,
    )
    gpus_per_node: int = described(
        "GPUs that each node must have; 0 runs on CPUs and expects none.", Effect.NEXT_ATTEMPT, 0, ge=0, le=64
    )


class Spares(Section):
    """Healthy nodes of a rack in use that the layout does not need."""

    mode: Literal["Hot", "Reserved", "None"] = described(
        "Hot: a worker idles on each spare with its imports done. Reserved: the node is kept free, its worker starts "
        "when needed. None: no spares.",
        Effect.AT_ONCE,
        "Hot",
    )
    per_rack: int = described(
        "Spares wanted in each rack. Fewer are accepted where a rack has not enough nodes.",
        Effect.AT_ONCE,
        0,
        ge=0,
        le=100,
    )


def _lowest_fits(least: int | None, racks: int) -> str | None:
    return f"found {least}, allowed at most racks ({racks})" if least is not None and least > racks else None


class Layout(Section):
    """Racks x nodes per rack x ranks per node that an attempt trains on."""

    rules = (
        Rule("minRacks", ("minRacks", "racks"), "!has(self.minRacks) || self.minRacks <= self.racks", _lowest_fits),
    )

    racks: int = described(
        "Racks to train on. Racks are data-parallel replicas, each holding a whole copy of the model.",
        Effect.NEXT_ATTEMPT,
        ge=1,
        le=1000,
    )
    min_racks: Annotated[int, Field(ge=1, le=1000)] | None = described(
        "The fewest racks to go on with when nodes are lost; below it the run is held. Left out it equals racks.",
        Effect.AT_ONCE,
        None,
    )
    nodes_per_rack: int = described("Nodes that train in each rack, spares not counted.", Effect.REFUSED, ge=1, le=1000)
    ranks_per_node: int = described("Trainer processes on each node.", Effect.REFUSED, 1, ge=1, le=64)
    spares: Spares = described("Nodes that stand by in each rack.", Effect.AT_ONCE, default_factory=Spares)

    @property
    def lowest_racks(self) -> int:
        """The fewest racks that an attempt may have."""
        return self.racks if self.min_racks is None else self.min_racks
