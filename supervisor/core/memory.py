"""What the core must remember and cannot observe. Small, versioned, persisted before anything is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from supervisor.core.budget import Charge
from supervisor.core.incident import Incident
from supervisor.core.ledger import Ledger
from supervisor.core.lineage import Candidate, Lineage
from supervisor.core.observation import Ask, Checkpoint
from supervisor.core.placement import Placement
from supervisor.core.reasons import Reason
from supervisor.core.spec import Layout
from supervisor.core.verdict import Verdict

VERSION = 1
MAX_REQUESTS = 64
MAX_CHECKPOINTS = 256


class Phase(Enum):
    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    RECOVERING = "Recovering"
    SUSPENDED = "Suspended"
    HELD = "Held"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class Stage(Enum):
    LAUNCHING = "launching"  # ordered; no step completed yet
    STEPPING = "stepping"
    SAVING = "saving"  # asked to save and stop
    STOPPING = "stopping"  # TERM, then KILL


class StopFor(Enum):
    FAULT = "fault"
    SUSPEND = "suspend"
    DONE = "done"
    ROLLBACK = "rollback"  # a person goes back to an earlier step
    MOVE = "move"  # saved, and on to a better placement


@dataclass(frozen=True, slots=True)
class Watch:
    """What the gang is in, and since when nothing of it has moved.

    `phase`: as the trainer contract has it, "step" between steps. `mark` changes with anything that is progress in
    that phase. `suspected_ms`: since when it is suspected to hang, and `look`: which look at its ranks that asked for.
    """

    phase: str
    mark: tuple[int, ...]
    since_ms: int
    suspected_ms: int | None = None
    look: int = 0


@dataclass(frozen=True, slots=True)
class Shown:
    """How long a phase stood still before it went on, of late, in ms: what its deadline is learned from."""

    phase: str
    silences: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Pace:
    """Milliseconds per step: `best` sustained so far on this many racks, `recent` samples, the newest last."""

    racks: int
    best: float | None = None
    recent: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Avoided:
    """A node or rack that placement does without while it can, until then."""

    name: str
    until_ms: int
    why: str


@dataclass(frozen=True, slots=True)
class Hang:
    """A hang that was confirmed: `node` where the evidence named one."""

    at_ms: int
    node: str | None
    racks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One gang of ranks. `sessions`: the worker that each node had when the attempt was placed.

    `completed` and `progressed_ms`: the highest step completed and when that was seen. `lost` and `restarted`:
    nodes whose worker went away; `given_up`: those whose ranks did not end when told to. Once in there, a node stays
    in there for this attempt (fencing).
    """

    number: int
    placement: Placement
    parent: Checkpoint | None
    coordinator: str
    sessions: tuple[tuple[str, str], ...]
    started_ms: int
    stage: Stage
    stage_since_ms: int
    stop_for: StopFor | None = None
    save: int = 0
    completed: int = 0
    progressed_ms: int = 0
    spoke: bool = False
    lost: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    deadline_passed: bool = False
    given_up: tuple[str, ...] = ()
    idle_rack: str = ""  # a whole rack that this attempt could have used, had it been there; told once
    idle_since_ms: int = 0
    watch: Watch | None = None
    verdict: Verdict | None = None  # known when it was stopped: a hang is judged while its ranks live
    slow_node: str = ""  # named once
    slow_since_ms: int | None = None
    paced: tuple[int, int] | None = None  # (when, step) of the last sample of the pace
    moved_at: int = -1  # the checkpoint at which a move was last considered

    def session_of(self, node: str) -> str | None:
        return dict(self.sessions).get(node)


@dataclass(frozen=True, slots=True)
class Hold:
    """A person must act. `message` says why, `way_out` what to type."""

    reason: Reason
    message: str
    way_out: str
    since_ms: int


class CheckState(Enum):
    WANTED = "wanted"
    FITS = "fits"
    NOT_CHECKED = "not-checked"
    REFUSED = "refused"


class RequestState(Enum):
    PENDING = "pending"
    DONE = "done"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """`after_step`: a requested save is done once a later step than this is committed."""

    id: str
    ask: Ask
    state: RequestState
    message: str = ""
    after_step: int = 0
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Memory:
    """`found`: what may be restored, newest first, surveyed since the last attempt ended (None: not yet).

    `high_step`: the highest step ever completed on this lineage; steps up to it are replay. `unheard`: since when
    each fleet node has no worker that syncs. `stalled`: faults in a row without a newer committed checkpoint.
    `watched_since_ms`: when somebody began to watch again after an absence.
    """

    ledger: Ledger
    version: int = VERSION
    revision: int = 0
    phase: Phase = Phase.PENDING
    reason: Reason = Reason.WAITING_FOR_WORKERS
    message: str = ""
    newest_attempt: int = 0
    attempt: Attempt | None = None
    placement: Placement | None = None
    lineage: Lineage = ()
    checkpoints: tuple[Candidate, ...] = ()
    damaged: tuple[Checkpoint, ...] = ()
    to_set_aside: tuple[Checkpoint, ...] = ()
    collected: Checkpoint | None = None
    collecting: Checkpoint | None = None
    survey_number: int = 1
    found: tuple[Candidate, ...] | None = None
    from_step: int | None = None
    check: CheckState = CheckState.WANTED
    check_number: int = 1
    checked_fingerprint: str | None = None
    charges: tuple[Charge, ...] = ()
    stalled: int = 0
    progress_mark: Checkpoint | None = None
    high_step: int = 0
    total_steps: int | None = None
    incident: Incident | None = None
    incidents: int = 0
    recovered: int = 0
    hold: Hold | None = None
    suspend_asked: bool = False
    requests: tuple[RequestOutcome, ...] = ()
    unheard: tuple[tuple[str, int], ...] = ()
    fencing: tuple[tuple[str, str], ...] = ()
    unwatched_ms: int = 0
    watched_since_ms: int = 0
    shown: tuple[Shown, ...] = ()
    paces: tuple[Pace, ...] = ()
    restarts_ms: tuple[int, ...] = ()  # what it took of late from the start of an attempt to its first step
    hangs: tuple[Hang, ...] = ()
    avoided: tuple[Avoided, ...] = ()
    suspects: tuple[str, ...] = ()  # racks, one of which is behind hangs that nothing else explains
    skips: tuple[tuple[int, int], ...] = ()
    prepared: tuple[Layout, ...] = ()
    preparing: str | None = None  # the fingerprint that programs were last prepared for
    unprepared: str = ""  # why not, where they could not be
    unsaved_since_ms: int | None = None
    failed_save: tuple[int, int] = (0, 0)  # (attempt, step) of the last one that was told of
