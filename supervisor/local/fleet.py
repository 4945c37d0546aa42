"""The laptop's fleet: racks of nodes that are process groups, some of which may be dead by order of chaos."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from supervisor.core.observation import Node
from supervisor.local.rundir import write_json
from supervisor.wire.json_file import read_json

MAX_NODES = 256


class BadFleet(ValueError):
    """`--fleet` cannot be understood; the text says what is allowed."""


@dataclass(frozen=True, slots=True)
class Fleet:
    racks: int
    nodes_per_rack: int
    dead: frozenset[str] = frozenset()

    def nodes(self) -> tuple[Node, ...]:
        return tuple(
            Node(f"r{rack}n{node}", f"r{rack}", present=f"r{rack}n{node}" not in self.dead)
            for rack in range(self.racks)
            for node in range(self.nodes_per_rack)
        )

    def names(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes())

    def in_rack(self, rack: str) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes() if node.rack == rack)

    def without(self, names: tuple[str, ...]) -> Fleet:
        return replace(self, dead=self.dead | set(names))

    def revived(self, names: tuple[str, ...]) -> Fleet:
        return replace(self, dead=self.dead - set(names))


def parse_fleet(text: str) -> Fleet:
    """`RACKSxNODES`, such as 2x3. Raises `BadFleet`."""
    match = re.fullmatch(r"([1-9][0-9]{0,2})x([1-9][0-9]{0,2})", text)
    if match is None:
        raise BadFleet(f"--fleet: found {text[:40]!r}, allowed is RACKSxNODES, such as 2x3")
    fleet = Fleet(int(match[1]), int(match[2]))
    if fleet.racks * fleet.nodes_per_rack > MAX_NODES:
        raise BadFleet(
            f"--fleet: {text} is {fleet.racks * fleet.nodes_per_rack} nodes, at most {MAX_NODES} are allowed"
        )
    return fleet


def save_fleet(path: Path, fleet: Fleet) -> None:
    write_json(path, {"racks": fleet.racks, "nodesPerRack": fleet.nodes_per_rack, "dead": sorted(fleet.dead)})


def load_fleet(path: Path) -> Fleet | None:
    """The fleet that this run had, None where it never had one or the file is damaged."""
    try:
        data = read_json(path)
        return Fleet(int(data["racks"]), int(data["nodesPerRack"]), frozenset(map(str, data["dead"])))
    except (OSError, ValueError, KeyError, TypeError):
        return None
