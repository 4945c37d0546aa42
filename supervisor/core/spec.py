"""What the user asked for, as the core needs it: parsed and checked at the edge, never re-checked here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

HOUR_MS = 3_600_000


class Cause(Enum):
    """What kind of thing went wrong. Each has its own budget, or holds the run at once."""

    HARDWARE = "hardware"
    SOFTWARE = "software"
    CONFIG = "config"
    DATA = "data"
    STORAGE = "storage"
    UNKNOWN = "unknown"
    REQUEST = "request"  # a person asked for it: never charged


@dataclass(frozen=True, slots=True)
class Budget:
    """At most `count` faults within any window of `window_ms`."""

    count: int
    window_ms: int


@dataclass(frozen=True, slots=True)
class Layout:
    """What an attempt trains on: whole racks, the same number of nodes in each."""

    racks: int
    nodes_per_rack: int
    ranks_per_node: int

    @property
    def world_size(self) -> int:
        return self.racks * self.nodes_per_rack * self.ranks_per_node

    def __str__(self) -> str:
        return f"{self.racks}x{self.nodes_per_rack}x{self.ranks_per_node}"


@dataclass(frozen=True, slots=True)
class Budgets:
    """Sliding-window budgets per cause; configuration and data errors hold the run at once and have none."""

    hardware: Budget = Budget(30, 24 * HOUR_MS)
    software: Budget = Budget(5, 24 * HOUR_MS)
    storage: Budget = Budget(5, 24 * HOUR_MS)
    unknown: Budget = Budget(10, 24 * HOUR_MS)

    def of(self, cause: Cause) -> Budget | None:
        return {
            Cause.HARDWARE: self.hardware,
            Cause.SOFTWARE: self.software,
            Cause.STORAGE: self.storage,
            Cause.UNKNOWN: self.unknown,
        }.get(cause)


@dataclass(frozen=True, slots=True)
class Limits:
    """Between which bounds a learned deadline of one phase lies; before anything is learned it is the ceiling."""

    floor_ms: int
    ceiling_ms: int


MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long one phase of the trainer contract may stand still before it is suspected, by phase."""

    importing: Limits = Limits(MINUTE_MS, 15 * MINUTE_MS)
    init: Limits = Limits(MINUTE_MS, 30 * MINUTE_MS)
    restore: Limits = Limits(MINUTE_MS, 30 * MINUTE_MS)
    compiling: Limits = Limits(2 * MINUTE_MS, 30 * MINUTE_MS)
    first_step: Limits = Limits(MINUTE_MS, 30 * MINUTE_MS)
    step: Limits = Limits(2_000, 15 * MINUTE_MS)
    save: Limits = Limits(MINUTE_MS, 30 * MINUTE_MS)
    evaluation: Limits = Limits(MINUTE_MS, 30 * MINUTE_MS)
    exit: Limits = Limits(MINUTE_MS, 10 * MINUTE_MS)


class Growing(Enum):
    """Whether a run that trains on fewer racks than it might goes back to more."""

    WHEN_IT_PAYS = "WhenItPays"
    ALWAYS = "Always"
    NEVER = "Never"


@dataclass(frozen=True, slots=True)
class Spec:
    """One run.

    `fingerprint` changes whenever the trainer or the layout does, so that a check is asked anew. `settle_ms`: how long
    a rack must have been whole and idle before the run grows back to it. `slow_share`, `slow_for_ms`: by how much, and
    for how long, steps must have become slower before a node is blamed. `unsaved_limit_ms`: how long saves may fail.
    """

    name: str
    layout: Layout
    min_racks: int
    suspend: bool = False
    check_layouts: bool = True
    verify: bool = True
    fingerprint: str = ""
    budgets: Budgets = Budgets()
    node_faults: Budget = Budget(3, 24 * HOUR_MS)
    no_progress_limit: int = 3
    startup_deadline_ms: int = 45 * 60_000
    worker_lost_ms: int = 5_000
    stop_grace_ms: int = 10_000
    deadlines: Deadlines = Deadlines()
    growing: Growing = Growing.WHEN_IT_PAYS
    settle_ms: int = 10 * MINUTE_MS
    slow_share: float = 0.1
    slow_for_ms: int = 5 * MINUTE_MS
    unsaved_limit_ms: int = 6 * HOUR_MS
    prepare_ahead: bool = True
    keep_newest: int = 3
    keep_every_steps: int | None = None

    def allowed_layouts(self) -> tuple[Layout, ...]:
        """Every layout that a recovery may choose, the largest first."""
        shape = self.layout
        return tuple(
            Layout(racks, shape.nodes_per_rack, shape.ranks_per_node)
            for racks in range(shape.racks, self.min_racks - 1, -1)
        )
