"""The one registry of reason codes: stable, CamelCase, the same in condition, event, metric label, log and explain."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    # before training
    WAITING_FOR_WORKERS = "WaitingForWorkers"
    SURVEYING_CHECKPOINTS = "SurveyingCheckpoints"
    CHECKING_LAYOUTS = "CheckingLayouts"
    LAYOUTS_NOT_CHECKED = "LayoutsNotChecked"
    LAYOUTS_FIT = "LayoutsFit"
    LAYOUT_REFUSED = "LayoutRefused"
    INSUFFICIENT_CAPACITY = "InsufficientCapacity"
    # an attempt's life
    ATTEMPT_STARTED = "AttemptStarted"
    STEPPING = "Stepping"
    STOPPING = "Stopping"
    SUSPENDED = "Suspended"
    RESUMED = "Resumed"
    COMPLETED = "Completed"
    CHECKPOINT_COMMITTED = "CheckpointCommitted"
    CHECKPOINT_SET_ASIDE = "CheckpointSetAside"
    RESTARTED_WITHOUT_WATCH = "RestartedWithoutWatch"
    LINEAGE_REBUILT = "LineageRebuilt"
    MEMORY_DAMAGED = "MemoryDamaged"
    # what went wrong: the causes of incidents
    NODE_LOST = "NodeLost"
    RACK_LOST = "RackLost"
    WORKER_RESTARTED = "WorkerRestarted"
    RANKS_REFUSED = "RanksRefused"
    KILLED_FROM_OUTSIDE = "KilledFromOutside"
    KILLED_BY_SIGNAL = "KilledBySignal"
    BUS_ERROR = "BusError"
    PROGRAM_ERROR = "ProgramError"
    NON_FINITE_LOSS = "NonFiniteLoss"
    CONFIGURATION_ERROR = "ConfigurationError"
    CHECKPOINT_FOREIGN = "CheckpointForeign"
    CHECKPOINT_DAMAGED = "CheckpointDamaged"
    DATA_ERROR = "DataError"
    STORAGE_ERROR = "StorageError"
    EXITED_EARLY = "ExitedEarly"
    RESTART_REQUESTED = "RestartRequested"
    START_DEADLINE_PASSED = "StartDeadlinePassed"
    STOP_DEADLINE_PASSED = "StopDeadlinePassed"
    NO_ROOT_FOUND = "NoRootFound"
    # what is done about it: the rungs of the ladder
    RESTART_IN_PLACE = "RestartInPlace"
    SWAP_SPARE = "SwapSpare"
    MOVE_TO_SPARE_RACK = "MoveToSpareRack"
    DROP_RACK = "DropRack"
    GROW = "Grow"
    RESHAPED = "Reshaped"
    # why a person must act
    BUDGET_EXHAUSTED = "BudgetExhausted"
    NO_PROGRESS = "NoProgress"
    STEP_NOT_FOUND = "StepNotFound"
    CHECKPOINTS_GONE = "CheckpointsGone"
    SURVEY_FAILED = "SurveyFailed"
    # what conditions say beside those
    CHECKPOINT_FRESH = "CheckpointFresh"
    CHECKPOINT_STALE = "CheckpointStale"
    INTERVAL_NOT_KNOWN = "IntervalNotKnown"
    ALL_RACKS = "AllRacks"
    RACK_IDLE = "RackIdle"
    # nodes
    NODE_SET_ASIDE = "NodeSetAside"
    WORKER_FENCED = "WorkerFenced"
    # requests
    REQUEST_DONE = "RequestDone"
    REQUEST_REFUSED = "RequestRefused"
