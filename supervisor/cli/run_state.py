"""What a run's directory tells of it, read without pydantic, so that `status` answers at once.

Everything in there may be damaged, half of another version, or absent: what is not of the expected kind counts as not
said.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from supervisor.cli.left_workers import living_workers
from supervisor.local.rundir import RunDirectory

MAX_BYTES = 8 << 20
ENDED = ("Succeeded", "Failed")
ACTIVE = ("Pending", "Starting", "Running", "Recovering")
Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunState:
    """`run`: the TrainingRun of status.json, {} where there is none. `damage`: why it cannot be read.

    `left`: the nodes whose worker lives on without a supervisor.
    """

    directory: RunDirectory
    run: Data
    supervisor: int | None
    damage: str = ""
    left: tuple[str, ...] = ()

    @property
    def status(self) -> Data:
        found = self.run.get("status")
        return found if isinstance(found, dict) else {}

    @property
    def name(self) -> str:
        """Of the manifest: the name that the core uses in its sentences."""
        metadata = self.run.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return name if isinstance(name, str) else self.directory.root.name

    @property
    def phase(self) -> str:
        return self.text("phase") or "Unknown"

    @property
    def unwatched(self) -> bool:
        """Its supervisor is gone, and the phase that it wrote last needs one."""
        return self.supervisor is None and self.phase in ACTIVE

    @property
    def stopped(self) -> bool:
        """Unwatched, and nothing of it lives on: it does not train, whatever was written last."""
        return self.unwatched and not self.left

    @property
    def ended(self) -> bool:
        """Nothing more will happen to it by itself."""
        return self.supervisor is None and self.phase in (*ENDED, "Suspended", "Held")

    def text(self, key: str) -> str:
        value = self.status.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> float | None:
        return number(self.status, key)

    def integer(self, key: str) -> int | None:
        return integer(self.status, key)

    def section(self, key: str) -> Data:
        value = self.status.get(key)
        return value if isinstance(value, dict) else {}

    def items(self, key: str) -> list[Data]:
        value = self.status.get(key)
        return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []

    def age_seconds(self, key: str) -> float | None:
        """How long ago the moment under `key` was."""
        return age_seconds(self.status, key)

    def wanted_racks(self) -> int | None:
        spec = self.run.get("spec")
        layout = spec.get("layout") if isinstance(spec, dict) else None
        return integer(layout, "racks") if isinstance(layout, dict) else None


def read_run(directory: RunDirectory) -> RunState:
    """Never raises for what the file holds; raises OSError where it may not be read."""
    pid = directory.supervisor_pid()
    try:
        with directory.status.open("rb") as file:
            data = json.loads(file.read(MAX_BYTES))
    except FileNotFoundError:
        return RunState(directory, {}, pid, "has no status yet")
    except (ValueError, RecursionError):
        return RunState(directory, {}, pid, "its status.json is damaged")
    if not isinstance(data, dict) or not isinstance(data.get("status"), dict):
        return RunState(directory, {}, pid, "its status.json is damaged")
    state = RunState(directory, data, pid)
    return replace(state, left=tuple(living_workers(directory))) if state.unwatched else state


def number(data: Data, key: str) -> float | None:
    value = data.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def integer(data: Data, key: str) -> int | None:
    value = data.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text(data: Data, key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""


def age_seconds(data: Data, key: str) -> float | None:
    try:
        return wall_seconds() - datetime.fromisoformat(text(data, key)).timestamp()
    except (ValueError, OverflowError):
        return None


def wall_seconds() -> float:
    return time.time()
