"""Runs as their directories tell them: written by hand, at a fixed moment, without any process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from supervisor.api.digest import digest
from supervisor.api.dump import to_json as resource_json
from supervisor.api.dump import to_yaml
from supervisor.api.records import to_json
from supervisor.api.types import TrainingRun
from supervisor.core.actions import Command, GangIntent, SendOrder, StartWorker, WorkerOrder
from supervisor.core.decision import Decision, Note
from supervisor.core.incident import Incident, Outcome
from supervisor.core.ledger import Category, Ledger, Times
from supervisor.core.lineage import Candidate
from supervisor.core.memory import Attempt, CheckState, Hold, Memory, Phase, RequestOutcome, RequestState, Stage
from supervisor.core.observation import (
    Ask,
    Checkpoint,
    Exit,
    Gang,
    Node,
    Observation,
    Rank,
    RankState,
    Worker,
)
from supervisor.core.reasons import Reason
from supervisor.core.spec import Cause
from supervisor.core.verdict import Verdict
from supervisor.driver import Decided
from supervisor.local.fleet import Fleet, save_fleet
from supervisor.local.rundir import RunDirectory
from supervisor.observe.decision_log import DecisionLog
from supervisor.observe.journal import Journal
from supervisor.observe.progress import Progress
from tests import builders
from tests.api.manifests import run_with

NOW = builders.START_MS + 754_000
SPENT = Times(
    train=400_000, replay=20_000, save=9_000, detect=41_000, stop=3_000, place=11_000, start=150_000, compile=80_000,
    restore=30_000, unattributed=10_000,
)  # fmt: skip
ESCAPE = "\x1b[31mred\x07"
FLEET = Fleet(2, 3, frozenset({"r0n1"}))


def manifest(name: str = "hero", **spec: Any) -> TrainingRun:
    run = run_with(
        layout={"racks": 2, "minRacks": 1, "nodesPerRack": 2, "spares": {"perRack": 1}},
        checkpoint={"everySteps": 10},
        **spec,
    )
    return run.model_copy(update={"metadata": run.metadata.model_copy(update={"name": name})})


def attempt(number: int = 2, completed: int = 83, stage: Stage = Stage.STEPPING, **changes: Any) -> Attempt:
    """On r0n0 and r0n2 (which came for r0n1), and both nodes of r1."""
    started = Attempt(
        number=number,
        placement=builders.placement("r0: r0n0 r0n2", "r1: r1n0 r1n1"),
        parent=Checkpoint(1, 40),
        coordinator="127.0.0.1:5000",
        sessions=(),
        started_ms=NOW - 300_000,
        stage=stage,
        stage_since_ms=NOW - 240_000,
        completed=completed,
        progressed_ms=NOW - 1_000,
        spoke=True,
    )
    return replace(started, **changes)


def memory(**changes: Any) -> Memory:
    """A run in its second attempt, that has lost a node before."""
    told = Memory(
        ledger=Ledger(builders.START_MS, NOW, Category.TRAIN, run=SPENT),
        phase=Phase.RUNNING,
        reason=Reason.STEPPING,
        message="attempt 2 trains on 2x2x1",
        newest_attempt=2,
        attempt=attempt(),
        checkpoints=(Candidate(Checkpoint(1, 40), True), Candidate(Checkpoint(2, 80), False)),
        check=CheckState.FITS,
        high_step=47,
        total_steps=160,
        incidents=1,
        recovered=1,
    )
    return replace(told, **changes)


def held(**changes: Any) -> Memory:
    hold = Hold(
        Reason.NO_PROGRESS,
        "3 attempts in a row ended without a newer checkpoint",
        "look at marin-sup logs hero, then: marin-sup resume hero",
        NOW - 60_000,
    )
    shown = {"phase": Phase.HELD, "reason": hold.reason, "message": hold.message, "hold": hold, "attempt": None}
    return memory(**(shown | changes))


def succeeded(**changes: Any) -> Memory:
    shown: dict[str, Any] = {
        "phase": Phase.SUCCEEDED,
        "reason": Reason.COMPLETED,
        "message": "all steps are trained; the last is 160",
        "attempt": None,
        "placement": builders.placement("r0: r0n0 r0n2"),
        "high_step": 160,
        "incidents": 2,
        "requests": (RequestOutcome("a1", Ask.CHECKPOINT_NOW, RequestState.DONE, "saved as a2:84"),),
    }
    return memory(**(shown | changes))


def progress(**changes: Any) -> Progress:
    shown = Progress(
        attempt=2,
        step=83,
        total_steps=160,
        tokens_per_step=2048,
        flops_per_step=2e9,
        peak_flops=1e10,
        peak_is_measured=True,
        devices=4,
        loss=2.4123,
        first_loss=5.5451,
        eval_loss=2.5012,
        greeted=2,
        phase="train",
        commit_times={Checkpoint(2, 80): NOW - 12_000},
    )
    shown.pace.extend([(2, 82, NOW - 1_200), (2, 83, NOW - 1_000)])
    for key, value in changes.items():
        setattr(shown, key, value)
    return shown


def lost_node(**changes: Any) -> Incident:
    verdict = Verdict(
        Cause.HARDWARE,
        "node r0n1",
        Reason.NODE_LOST,
        "the worker on node r0n1 is gone and does not come back",
        0.9,
        ("node r0n1: no worker answers", "3 rank(s) followed"),
        "r0n1",
    )
    told = Incident(
        number=1,
        attempt=1,
        opened_ms=NOW - 340_000,
        step=47,
        spent=Times(),
        verdict=verdict,
        rung=Reason.SWAP_SPARE,
        action="swapped r0n1 for r0n2, from step 40",
        resumed_from=Checkpoint(1, 40),
        steps_lost=7,
        cost=Times(train=400, replay=1_500, detect=5_200, stop=300, start=6_100, compile=2_000, restore=900),
        outcome=Outcome.RECOVERED,
        closed_ms=NOW - 320_000,
        reached=47,
    )
    return replace(told, **changes)


def hostile_incident() -> Incident:
    """Still open, and its evidence is a trainer's own text."""
    verdict = Verdict(Cause.SOFTWARE, "code", Reason.PROGRAM_ERROR, f"rank 2 said {ESCAPE}\nand more", 0.8)
    return lost_node(number=2, attempt=2, verdict=verdict, rung=None, action="", steps_lost=None, outcome=Outcome.OPEN)


def states(*dead: str) -> list[tuple[str, str, str]]:
    words = {"r0n1": "dead", "r1n2": "spare"}
    return [(node.name, node.rack, words.get(node.name, "training")) for node in builders.fleet()]


def decided() -> Decided:
    """The pass in which the lost node's attempt had ended, and the spare was chosen."""
    before = memory(
        phase=Phase.RECOVERING,
        newest_attempt=1,
        attempt=attempt(1, 47, Stage.STOPPING, placement=builders.TWO_RACKS, parent=None, lost=("r0n1",)),
        unheard=(("r0n1", NOW - 6_000),),
    )
    words = f"step 47\ngloo: connection reset {ESCAPE}"
    gone = Exit(75, None, False, NOW - 2_000, words)
    told = Exit(None, 15, True, NOW - 1_000, "bye")
    ends = {"r0n0": (0, gone), "r1n0": (2, gone), "r1n1": (3, told)}
    working = tuple(
        Worker(node, "s", True, gangs=(Gang(1, (Rank(rank, RankState.EXITED, "train", 48, 47, exit),)),))
        for node, (rank, exit) in ends.items()
    )
    idle = tuple(Worker(node, "s", True) for node in ("r0n2", "r1n2"))
    nodes = tuple(Node(n.name, n.rack, n.name != "r0n1") for n in builders.fleet())
    after = replace(
        before,
        newest_attempt=2,
        reason=Reason.ATTEMPT_STARTED,
        message="attempt 2 starts on 2x2x1",
        attempt=attempt(2, 0, Stage.LAUNCHING),
        incident=lost_node(outcome=Outcome.OPEN, closed_ms=None),
    )
    layout = after.attempt.placement.layout if after.attempt else builders.TWO_RACKS.layout
    gang = GangIntent(2, Command.RUN, (), layout, "127.0.0.1:5000", Checkpoint(1, 40), 0, False, 2_000)
    orders = tuple(SendOrder(node, WorkerOrder("a2:run", gang)) for node in ("r0n0", "r0n2", "r1n0", "r1n1"))
    notes = (
        Note(Reason.NODE_LOST, "the worker on node r0n1 is gone and does not come back"),
        Note(Reason.ATTEMPT_STARTED, "attempt 2 starts on 2x2x1"),
    )
    decision = Decision(after, (StartWorker("r0n1"), *orders), notes, (lost_node(outcome=Outcome.OPEN),), 1_000)
    return Decided(builders.spec(), before, Observation(nodes, (*working, *idle)), NOW - 300_000, decision)


told_progress = progress  # a parameter below has its name


def write_run(
    root: Path,
    memory: Memory,
    progress: Progress | None = None,
    incidents: Sequence[Incident] = (),
    decisions: Sequence[Decided] = (),
    name: str = "hero",
    updated_ms: int = NOW - 2_000,
) -> RunDirectory:
    """The directory `root/name` as a supervisor leaves it."""
    directory = RunDirectory(root / name)
    directory.create()
    run = manifest(name)
    told = progress if progress is not None else told_progress()
    status = digest(run, memory, told, states(), 4711, updated_ms)
    directory.status.write_text(resource_json(status))
    directory.manifest.write_text(to_yaml(run))
    save_fleet(directory.fleet, FLEET)
    journal = Journal(directory.journal)
    for incident in incidents:
        journal.append({"kind": "incident", "t": NOW, "incident": json.loads(to_json(incident))})
    journal.append(*exits())
    journal.close()
    log = DecisionLog(directory.decisions)
    for one in decisions:
        log.append(one)
    log.close()
    return directory


def exits() -> list[dict[str, Any]]:
    tail = f"step 46\nstep 47\nTraceback {ESCAPE}\nConnectionError: reset by peer"
    base = {"kind": "exit", "t": NOW, "attempt": 1}
    return [
        {**base, "rank": 2, "node": "r1n0", "code": 75, "signal": None, "byUs": False, "tail": tail},
        {**base, "rank": 0, "node": "r0n0", "code": None, "signal": 15, "byUs": True, "tail": "step 47\n"},
    ]


def write_output(directory: RunDirectory, attempt: int, rank: int, node: str, data: bytes) -> Path:
    folder = directory.node(node) / f"a{attempt:04d}" / f"rank-{rank:04d}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "output.log"
    path.write_bytes(data)
    return path
