"""What the journal of a run tells: its incidents and how ranks ended."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from supervisor.api.records import BadRecord, from_json
from supervisor.core.incident import Incident
from supervisor.local.rundir import RunDirectory
from supervisor.observe.journal import read_journal

MAX_RANKS = 4096  # per node, and nodes, that a damaged journal may claim


@dataclass(frozen=True, slots=True)
class EndedRank:
    rank: int
    node: str
    code: int | None
    signal: int | None
    by_us: bool
    tail: str

    @property
    def how(self) -> str:
        """In a few words."""
        ours = " after our stop" if self.by_us else ""
        if self.signal is not None:
            return f"killed by signal {self.signal}{ours}"
        return f"exited with {self.code}{ours}" if self.code is not None else f"ended{ours}"


def read_incidents(directory: RunDirectory) -> list[Incident]:
    """The newest version of each, in their order; entries that make no sense are passed over."""
    newest: dict[int, Incident] = {}
    for entry in read_journal(directory.journal):
        if entry["kind"] != "incident":
            continue
        try:
            incident = from_json(Incident, json.dumps(entry.get("incident")).encode())
        except BadRecord:
            continue
        newest[incident.number] = incident
    return [newest[number] for number in sorted(newest)]


def read_exits(directory: RunDirectory, attempt: int) -> list[EndedRank]:
    """How the ranks of an attempt ended, with the last words of each, in the order of ranks."""
    entries = (e for e in read_journal(directory.journal) if e["kind"] == "exit" and e.get("attempt") == attempt)
    ended = {rank.rank: rank for entry in entries if (rank := _ended(entry)) is not None}
    return [ended[rank] for rank in sorted(ended)]


def _ended(entry: dict[str, Any]) -> EndedRank | None:
    rank = entry.get("rank")
    if not isinstance(rank, int):
        return None
    code, signal = entry.get("code"), entry.get("signal")
    return EndedRank(
        rank=rank,
        node=str(entry.get("node", "")),
        code=code if isinstance(code, int) else None,
        signal=signal if isinstance(signal, int) else None,
        by_us=entry.get("byUs") is True,
        tail=str(entry.get("tail", "")),
    )


def read_nodes(directory: RunDirectory, attempt: int) -> dict[int, str]:
    """The node that each rank of an attempt was placed on; empty where the journal does not tell."""
    placed: dict[int, str] = {}
    for entry in read_journal(directory.journal):
        told = entry.get("attempt")
        if entry["kind"] != "attempt" or not isinstance(told, dict) or told.get("number") != attempt:
            continue
        nodes, layout = told.get("nodes"), told.get("layout")
        if isinstance(nodes, list) and isinstance(layout, list) and layout and isinstance(layout[-1], int):
            each = min(max(layout[-1], 0), MAX_RANKS)
            placed = {number: str(nodes[number // each]) for number in range(min(len(nodes), MAX_RANKS) * each)}
    return placed
