"""Which nodes an attempt runs on, and which rung of the ladder that is."""

from __future__ import annotations

import pytest

from supervisor.core.ladder import rung
from supervisor.core.placement import Placement, Shortfall, place
from supervisor.core.reasons import Reason
from supervisor.core.spec import Layout
from tests.builders import TWO_RACKS, placement

FULL = {"r0": ("r0n0", "r0n1", "r0n2"), "r1": ("r1n0", "r1n1", "r1n2")}
TWO = Layout(2, 2, 1)


def without(*nodes: str) -> dict[str, tuple[str, ...]]:
    return {rack: tuple(node for node in names if node not in nodes) for rack, names in FULL.items()}


CASES = (
    ("at first the first nodes of each rack", TWO, FULL, None, TWO_RACKS),
    ("the same again", TWO, FULL, TWO_RACKS, TWO_RACKS),
    ("a spare takes the slot of the node it replaces", TWO, without("r0n0"), TWO_RACKS,
     placement("r0: r0n2 r0n1", "r1: r1n0 r1n1")),
    ("a node that returns does not push out the spare", TWO, FULL, placement("r0: r0n2 r0n1", "r1: r1n0 r1n1"),
     placement("r0: r0n2 r0n1", "r1: r1n0 r1n1")),
    ("a rack that is not whole is left out", TWO, without("r0n0", "r0n1"), TWO_RACKS, placement("r1: r1n0 r1n1")),
    ("racks keep their order", TWO, FULL, placement("r1: r1n0 r1n1", "r0: r0n0 r0n1"),
     placement("r1: r1n0 r1n1", "r0: r0n0 r0n1")),
    ("a spare rack comes last", Layout(2, 2, 1), FULL | {"r2": ("r2n0", "r2n1")} | {"r0": ()}, TWO_RACKS,
     placement("r1: r1n0 r1n1", "r2: r2n0 r2n1")),
    ("fewer nodes per rack than before, the first of them gone", Layout(2, 2, 1), without("r0n1"),
     placement("r0: r0n0 r0n1 r0n2", "r1: r1n0 r1n1 r1n2"), placement("r0: r0n0 r0n2", "r1: r1n0 r1n1")),
    ("more nodes per rack than before", Layout(2, 3, 1), FULL, TWO_RACKS,
     placement("r0: r0n0 r0n1 r0n2", "r1: r1n0 r1n1 r1n2")),
)  # fmt: skip


@pytest.mark.parametrize(("name", "layout", "usable", "previous", "expected"), CASES, ids=[case[0] for case in CASES])
def test_nodes_are_placed(
    name: str, layout: Layout, usable: dict[str, tuple[str, ...]], previous: Placement | None, expected: Placement
) -> None:
    assert place(layout, 1, usable, previous) == expected


def test_a_shortfall_names_each_rack_that_is_not_whole() -> None:
    shortfall = place(TWO, 2, without("r1n0", "r1n1"), None)
    assert isinstance(shortfall, Shortfall)
    assert str(shortfall) == "2 whole rack(s) needed, 1 found: rack r1 has 1 of 2 nodes"
    assert "the fleet has no rack" in str(place(TWO, 1, {}, None))


def test_ranks_are_contiguous_per_rack_and_the_ordinal_of_a_rack_is_dense() -> None:
    placed = placement("r7: r7n0 r7n3", "r9: r9n1 r9n2", ranks_per_node=2)
    ranks = placed.ranks()
    assert [rank.rank for rank in ranks] == list(range(8))
    assert [rank.rack_ordinal for rank in ranks] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [rank.slot for rank in ranks] == [0, 1] * 4
    assert all(placed.node_of(rank.rank) == rank.node for rank in ranks)


RUNGS = (
    (None, TWO_RACKS, Reason.RESTART_IN_PLACE, "restarted in place"),
    (TWO_RACKS, TWO_RACKS, Reason.RESTART_IN_PLACE, "restarted in place"),
    (TWO_RACKS, placement("r0: r0n2 r0n1", "r1: r1n0 r1n1"), Reason.SWAP_SPARE, "swapped r0n0 for r0n2"),
    (TWO_RACKS, placement("r0: r0n0 r0n1", "r2: r2n0 r2n1"), Reason.MOVE_TO_SPARE_RACK, "moved from rack r1 to r2"),
    (TWO_RACKS, placement("r0: r0n0 r0n1"), Reason.DROP_RACK, "resharded from 2 to 1 racks without r1"),
    (placement("r0: r0n0 r0n1"), TWO_RACKS, Reason.GROW, "resharded from 1 to 2 racks"),
    (placement("r0: r0n0 r0n1"), placement("r0: r0n0"), Reason.RESHAPED, "resharded from 1x2x1 to 1x1x1"),
)


@pytest.mark.parametrize(("before", "after", "reason", "words"), RUNGS, ids=[row[3] for row in RUNGS])
def test_the_way_from_one_placement_to_the_next_is_a_rung(
    before: Placement | None, after: Placement, reason: Reason, words: str
) -> None:
    assert rung(before, after) == (reason, words)
