"""The trainer contract in names: environment variables, exit codes, what a rank is given (schema/trainer-v1.json)."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from supervisor.wire.messages import FAULTS, Control, GangOrder, LayoutShape, RankAssignment, TrainerCommand

CONTRACT = "1"

ENV_CONTRACT = "MARIN_SUP_CONTRACT"
ENV_COORDINATOR = "JAX_COORDINATOR_ADDRESS"
ENV_NUM_PROCESSES = "MARIN_SUP_NUM_PROCESSES"
ENV_PROCESS_ID = "MARIN_SUP_PROCESS_ID"
ENV_RACK = "MARIN_SUP_RACK"
ENV_PARTITION = "JAX_PARTITION_INDEX"
ENV_SLOT = "MARIN_SUP_SLOT"
ENV_ATTEMPT = "MARIN_SUP_ATTEMPT"
ENV_LAYOUT = "MARIN_SUP_LAYOUT"
ENV_PLAN = "MARIN_SUP_PLAN"
ENV_CONTROL = "MARIN_SUP_CONTROL"
ENV_EVENTS = "MARIN_SUP_EVENTS"
ENV_RESUME = "MARIN_SUP_RESUME"
ENV_CHECKPOINTS = "MARIN_SUP_CHECKPOINTS"
ENV_CACHE = "MARIN_SUP_CACHE"
ENV_CHECK = "MARIN_SUP_CHECK"
CONTRACT_NAMES = frozenset(value for name, value in list(globals().items()) if name.startswith("ENV_"))

# sysexits(3)
EXIT_DONE = 0
EXIT_DATA = 65
EXIT_PROGRAM = 70
EXIT_STORAGE = 74
EXIT_RESTART = 75
EXIT_CONFIG = 78
EXIT_SYSTEM = 71  # not a trainer's: the worker could not start the process (EX_OSERR)


@dataclass(frozen=True, slots=True)
class RankPaths:
    """The files of one rank; all absolute, all below `directory`."""

    directory: Path

    @property
    def events(self) -> Path:
        return self.directory / "events"

    @property
    def control(self) -> Path:
        return self.directory / "control.json"

    @property
    def plan(self) -> Path:
        return self.directory / "plan.json"

    @property
    def output(self) -> Path:
        return self.directory / "output.log"

    @property
    def stacks(self) -> Path:
        """Where the rank's Python stacks are appended when its worker asks for them."""
        return self.directory / "stacks"


def rank_environment(order: GangOrder, assignment: RankAssignment, paths: RankPaths) -> dict[str, str]:
    """What the contract adds to the environment of one rank (`$defs/environment`)."""
    environment = {
        ENV_CONTRACT: CONTRACT,
        ENV_COORDINATOR: order.coordinator,
        ENV_NUM_PROCESSES: str(order.world_size),
        ENV_PROCESS_ID: str(assignment.rank),
        ENV_RACK: str(assignment.rack),
        ENV_PARTITION: str(assignment.rack),
        ENV_SLOT: str(assignment.slot),
        ENV_ATTEMPT: str(order.number),
        ENV_LAYOUT: json.dumps(layout_object(order.layout)),
        ENV_PLAN: str(paths.plan),
        ENV_CONTROL: str(paths.control),
        ENV_EVENTS: str(paths.events),
        ENV_RESUME: f"{order.resume.attempt}:{order.resume.step}" if order.resume else "none",
        ENV_CHECKPOINTS: order.checkpoints,
    }
    if order.cache:
        environment[ENV_CACHE] = order.cache
    return environment


def layout_object(layout: LayoutShape) -> dict[str, int]:
    return {"racks": layout.racks, "nodesPerRack": layout.nodes_per_rack, "ranksPerNode": layout.ranks_per_node}


def control_object(control: Control, rank: int) -> dict[str, object]:
    """What this rank reads in its control file: its own faults alone. A kind of fault that nobody knows is left out."""
    fail = max((number for target, number in control.fail if target == rank), default=0)
    found: dict[str, object] = {"version": 1, "save": control.save, "stop": control.stop, "fail": fail}
    chaos: dict[str, int] = {}
    for target, kind, number in control.chaos:
        if target == rank and kind in FAULTS:
            chaos[kind] = max(number, chaos.get(kind, 0))
    return found | {"chaos": chaos} if chaos else found


def replace_json(path: Path, value: object) -> None:
    """Write a file that a rank may read at any moment: whole, or as it was before."""
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(json.dumps(value), encoding="utf-8")
    os.replace(temporary, path)


def trainer_problem(trainer: TrainerCommand) -> str | None:
    """Why this trainer cannot be started, in a sentence; None when it can."""
    if bool(trainer.module) == bool(trainer.command):
        return "the trainer needs either a module or a command, not both and not neither"
    return None
