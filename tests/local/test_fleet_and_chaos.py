"""What a person types for the fleet and for chaos."""

from __future__ import annotations

from pathlib import Path

import pytest

from supervisor.local import chaos
from supervisor.local.chaos import BadChaos, ChaosOrder, parse_chaos
from supervisor.local.fleet import BadFleet, Fleet, load_fleet, parse_fleet, save_fleet
from supervisor.local.rundir import RunDirectory


def test_a_fleet_is_racks_of_named_nodes() -> None:
    assert [(n.name, n.rack) for n in parse_fleet("2x2").nodes()] == [
        ("r0n0", "r0"),
        ("r0n1", "r0"),
        ("r1n0", "r1"),
        ("r1n1", "r1"),
    ]


@pytest.mark.parametrize("text", ["2", "2x", "x3", "0x3", "2x0", "-1x2", "2x3x4", "two", "", "999x999", "2 x 3"])
def test_a_fleet_that_makes_no_sense_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadFleet, match=r"--fleet: .*(2x3|at most)"):
        parse_fleet(text)


def test_dead_nodes_stay_dead_until_revived(tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    save_fleet(path, Fleet(2, 2).without(("r1n0",)))
    fleet = load_fleet(path)
    assert fleet is not None
    assert [n.name for n in fleet.nodes() if not n.present] == ["r1n0"]
    assert all(n.present for n in fleet.revived(("r1n0",)).nodes())


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"racks": "two"}', "\0"])
def test_a_damaged_fleet_file_is_no_fleet(tmp_path: Path, content: str) -> None:
    path = tmp_path / "fleet.json"
    path.write_text(content)
    assert load_fleet(path) is None


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("kill-node r0n1 @step 30", ChaosOrder("kill-node", "r0n1", 30)),
        ("kill-node r0n1 @ step 30", ChaosOrder("kill-node", "r0n1", 30)),
        ("kill-rank 3", ChaosOrder("kill-rank", "3")),
        ("  revive-rack   r1 ", ChaosOrder("revive-rack", "r1")),
        ("fail-rank 0 @step 0", ChaosOrder("fail-rank", "0", 0)),
    ],
)
def test_chaos_reads_as_it_is_said(text: str, order: ChaosOrder) -> None:
    assert parse_chaos(text) == order


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("explode r0n1", "allowed are: kill-rank"),
        ("kill-node 3", "a node, such as r0n1"),
        ("kill-rank r0n1", "a rank, such as 3"),
        ("kill-rack r0n1", "a rack, such as r1"),
        ("kill-node", "VERB TARGET"),
        ("kill-node r0n1 @step", "VERB TARGET"),
        ("kill-node r0n1 @step x", "VERB TARGET"),
        ("", "VERB TARGET"),
    ],
)
def test_chaos_that_makes_no_sense_is_refused_with_what_is_allowed(text: str, said: str) -> None:
    with pytest.raises(BadChaos, match=said):
        parse_chaos(text)


def test_a_scheduled_fault_that_happened_does_not_happen_again_when_the_run_goes_on(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.create()
    order = parse_chaos("kill-node r0n1 @step 30")
    path = chaos.send(directory, order, "scheduled-0")
    path.rename(chaos.done_path(path))
    chaos.send(directory, order, "scheduled-0")
    assert list(directory.chaos.glob("*.json")) == []
