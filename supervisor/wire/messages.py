"""The sync messages. Orders are level-triggered: the newest one says all that a worker is to do.

    worker --> POST /v1/report          Report          --> Acknowledgement
    worker --> GET  /v1/orders?after=N  (long poll)     --> Order, or 204 when nothing newer came in time

Everything that belongs to an attempt carries its number, and the receiver refuses what is older (fencing).
Durations and ages are milliseconds; ages count from the moment of sending, so clocks need not agree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PROTOCOL = 1
TRAINING = "training"  # the one kind of gang today; an unknown kind is answered "unsupported", never fatal

# ---- orders: supervisor to worker


@dataclass(frozen=True, slots=True)
class LayoutShape:
    racks: int
    nodes_per_rack: int
    ranks_per_node: int


@dataclass(frozen=True, slots=True)
class CheckpointRef:
    attempt: int
    step: int


@dataclass(frozen=True, slots=True)
class RankAssignment:
    """One process: its global rank, its slot on the node (0..ranks_per_node-1), its rack's dense ordinal."""

    rank: int
    slot: int
    rack: int


@dataclass(frozen=True, slots=True)
class TrainerCommand:
    """Either `module` (through the launcher) or `command` (as it is)."""

    module: str | None = None
    args: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    preload: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    working_directory: str | None = None


FAULTS = ("hang", "spin", "slowMs")  # by the names of the control file


@dataclass(frozen=True, slots=True)
class Control:
    """What MARIN_SUP_CONTROL says; numbers only grow within an attempt."""

    save: int = 0
    stop: bool = False
    fail: tuple[tuple[int, int], ...] = ()  # (rank, number): fault injection
    chaos: tuple[tuple[int, str, int], ...] = ()  # (rank, one of FAULTS, number): more of it


@dataclass(frozen=True, slots=True)
class GangOrder:
    """`command`: run (start those ranks if this number is new, keep them), stop (TERM, grace, KILL)."""

    kind: str
    number: int
    command: str
    ranks: tuple[RankAssignment, ...]
    world_size: int
    coordinator: str
    layout: LayoutShape
    trainer: TrainerCommand
    checkpoints: str
    cache: str
    resume: CheckpointRef | None = None
    plan: dict[str, Any] = field(default_factory=dict)
    control: Control = Control()
    grace_ms: int = 10_000


@dataclass(frozen=True, slots=True)
class TaskOrder:
    """A piece of work done once per id; its result is reported until the order no longer names it.

    survey    {root}                      -> {attempts: [...], steps: [{attempt, step, state, reason, tokens, parent}]}
                                             state: verified|damaged|unfinished; parent: [attempt, step] or null
    check     {trainer, layouts: [...]}   -> {state: answered|not-checked|failed, answers: [...], exit_code, output}
    set-aside {root, attempt, step}       -> {moved_to}   (a damaged checkpoint is kept, out of the way)
    collect   {root, keep: [[a, s], ...], current}  -> {removed: [[a, s], ...]}
    evidence  {attempt}                   -> {ranks: [{rank, state, cpu, stack: [frame, ...], error}]}
                                             what its living ranks show from outside; state: the kernel's letter (R, S,
                                             D, T); cpu: cores in use, or null; stack: `dir/file.py:LINE FUNCTION`,
                                             innermost first; error: what could not be seen. An older attempt: no ranks
    """

    id: str
    kind: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Standby:
    """Interpreters to keep ready on the node: `slots` of them, with `trainer.preload` imported."""

    trainer: TrainerCommand
    slots: int


@dataclass(frozen=True, slots=True)
class Order:
    """`key` names what is asked, so that the supervisor can see whether a worker acts on it already."""

    revision: int
    key: str = ""
    gangs: tuple[GangOrder, ...] = ()
    tasks: tuple[TaskOrder, ...] = ()
    standby: Standby | None = None
    leave: bool = False  # the run is over here: stop everything and exit


# ---- reports: worker to supervisor


@dataclass(frozen=True, slots=True)
class ExitReport:
    """How a rank ended. `by_us`: the worker had already sent it TERM or KILL for an order to stop."""

    code: int | None
    signal: int | None
    by_us: bool
    ago_ms: int
    tail: str = ""  # the bounded end of its output


@dataclass(frozen=True, slots=True)
class RankReport:
    """`state`: starting (no event yet), running, exited. Steps are the highest numbers seen, 0 for none.

    `own_ms`: milliseconds of its own work in a step of late, without waiting for its peers, 0 where it does not say.
    `moved`: bytes moved so far in the phase that it is in (restore, save).
    """

    rank: int
    state: str
    pid: int | None = None
    phase: str = ""
    entered: int = 0
    completed: int = 0
    start: str = "cold"  # cold or warm
    start_reason: str = ""  # why cold
    output_bytes: int = 0
    rejected_events: int = 0
    exit: ExitReport | None = None
    own_ms: int = 0
    moved: int = 0


@dataclass(frozen=True, slots=True)
class GangReport:
    """`state`: running, stopping, ended, unsupported, refused (older than the newest number seen here)."""

    kind: str
    number: int
    state: str
    ranks: tuple[RankReport, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One contract event of one rank; `sequence` grows by one per rank and attempt, from 1."""

    attempt: int
    rank: int
    sequence: int
    event: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TaskResult:
    id: str
    kind: str
    ok: bool
    result: dict[str, Any] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """`newest_attempt` is the highest number that the node was ever ordered.

    `session` is new for every worker process; `pid` is that of the process that the host started.
    `serial` grows by one per report of a session, so that one that was delayed on a dead connection never
    replaces a newer one (its events still count). `supervisor`: whose acknowledgements the choice of events follows,
    empty for none yet; another supervisor takes no events from this report, since there may be a gap before them.
    """

    node: str
    session: str
    protocol: int = PROTOCOL
    serial: int = 0
    pid: int = 0
    order_revision: int = 0
    order_key: str = ""
    newest_attempt: int = 0
    offer: str = ""  # host:port, free now, for the coordinator of the next attempt
    gangs: tuple[GangReport, ...] = ()
    events: tuple[EventRecord, ...] = ()
    results: tuple[TaskResult, ...] = ()
    dropped_events: int = 0
    supervisor: str = ""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """Per (attempt, rank): the highest sequence seen, and the highest that is safe in the journal.

    `supervisor` is new for every supervisor process: when it changes, whatever is not recorded is sent again.
    """

    seen: tuple[tuple[int, int, int], ...] = ()
    recorded: tuple[tuple[int, int, int], ...] = ()
    supervisor: str = ""
