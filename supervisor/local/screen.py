"""What a screen is shown while a run is supervised. What it looks like is the commands' business."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from supervisor.core.decision import Note
from supervisor.core.incident import Incident
from supervisor.core.memory import Memory
from supervisor.core.observation import Worker
from supervisor.local.fleet import Fleet
from supervisor.observe.progress import Progress


@dataclass(frozen=True, slots=True)
class View:
    """What a screen may show. `notes`: new since the last view."""

    memory: Memory
    progress: Progress
    fleet: Fleet
    workers: tuple[Worker, ...]
    now_ms: int
    notes: tuple[Note, ...]
    incidents: tuple[Incident, ...]


class Screen(Protocol):
    def show(self, view: View) -> None: ...

    def close(self) -> None: ...
