"""What the journal tells a supervisor that starts again: progress, incidents, and how far it had recorded."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from supervisor.api.records import BadRecord, from_json
from supervisor.core.incident import Incident
from supervisor.observe.journal import read_journal
from supervisor.observe.progress import Progress


@dataclass(slots=True)
class History:
    """`recorded`: per (attempt, rank) the highest event sequence in the journal."""

    progress: Progress = field(default_factory=Progress)
    incidents: dict[int, Incident] = field(default_factory=dict)
    exits: set[tuple[int, int]] = field(default_factory=set)
    recorded: dict[tuple[int, int], int] = field(default_factory=dict)


def read_history(path: Path) -> History:
    """Fold the whole journal. Entries that make no sense are passed over: history never stops a run."""
    history = History()
    for entry in read_journal(path):
        match entry["kind"]:
            case "event":
                _event(history, entry)
            case "incident":
                _incident(history, entry)
            case "exit":
                attempt, rank = entry.get("attempt"), entry.get("rank")
                if isinstance(attempt, int) and isinstance(rank, int):
                    history.exits.add((attempt, rank))
    return history


def _event(history: History, entry: dict[str, Any]) -> None:
    attempt, rank, sequence, event = (entry.get(key) for key in ("attempt", "rank", "sequence", "event"))
    at = entry.get("t")
    if not (isinstance(attempt, int) and isinstance(rank, int) and isinstance(sequence, int) and isinstance(at, int)):
        return
    if isinstance(event, dict):
        history.progress.feed(at, attempt, rank, event)
        key = (attempt, rank)
        history.recorded[key] = max(sequence, history.recorded.get(key, 0))


def _incident(history: History, entry: dict[str, Any]) -> None:
    try:
        incident = from_json(Incident, json.dumps(entry.get("incident")).encode())
    except BadRecord:
        return
    history.incidents[incident.number] = incident
