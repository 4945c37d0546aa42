"""What a run was started with, and what follows from it before anything is decided."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from supervisor.api.convert import core_spec
from supervisor.api.dump import to_yaml
from supervisor.api.load import load_run
from supervisor.api.mistakes import BadManifest
from supervisor.api.types import TrainingRun
from supervisor.core.spec import Spec
from supervisor.local.fleet import BadFleet, Fleet, load_fleet, save_fleet
from supervisor.local.rundir import RunDirectory, RunDirectoryError, write_atomically, write_json
from supervisor.local.translate import Surroundings
from supervisor.wire.messages import TrainerCommand


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`fleet`: None takes the one that the run had, else just what the layout needs, spares included.

    `data`: none given takes those that the run had. `source`: how a person names the manifest.
    """

    manifest: TrainingRun
    directory: RunDirectory
    fleet: Fleet | None = None
    data: tuple[str, ...] = ()
    chaos: tuple[str, ...] = ()
    source: str = "the manifest"


def fleet_of(options: RunOptions) -> Fleet:
    """The fleet as asked for, the run's own, or just what the layout and its spares need."""
    layout = options.manifest.spec.layout
    known = load_fleet(options.directory.fleet)
    spares = layout.spares.per_rack if layout.spares.mode != "None" else 0
    fleet = options.fleet or known or Fleet(layout.racks, layout.nodes_per_rack + spares)
    if known is not None and (known.racks, known.nodes_per_rack) == (fleet.racks, fleet.nodes_per_rack):
        fleet = fleet.without(tuple(known.dead))
    if fleet.nodes_per_rack < layout.nodes_per_rack or fleet.racks < (layout.min_racks or layout.racks):
        kept = options.fleet is None and known is not None
        whose = " (the run's own, which it has again where none is given)" if kept else ""
        raise BadFleet(
            f"--fleet: {fleet.racks}x{fleet.nodes_per_rack}{whose} is too small for spec.layout: at least "
            f"{_counted(layout.min_racks or layout.racks, 'rack')} of {_counted(layout.nodes_per_rack, 'node')} needed"
        )
    _expect_gpus(options.manifest.spec.fleet.gpus_per_node)
    return fleet


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _expect_gpus(per_node: int) -> None:
    """GPUs are looked for only where the manifest expects them."""
    found = len(list(Path("/dev").glob("nvidia[0-9]*"))) if per_node else 0
    if found < per_node:
        raise BadFleet(
            f"spec.fleet.gpusPerNode: {per_node} are expected on each node, this machine shows {found}; "
            "0 trains on the CPU"
        )


def refuse_another_run(options: RunOptions) -> None:
    """Two runs in one directory would continue each other's checkpoints. Raises `RunDirectoryError`."""
    path, name = options.directory.manifest, options.manifest.metadata.name
    try:
        known = load_run(path).metadata.name if path.exists() else name
    except BadManifest:  # of another version, or damaged: the rest of the directory is what counts
        return
    if known != name:
        raise RunDirectoryError(
            f"{options.directory.root}: holds the run {known}, and metadata.name is {name}; "
            "choose another directory with --workdir DIR, or keep the name to continue that run"
        )


def keep_options(options: RunOptions, fleet: Fleet) -> None:
    """What `resume` needs to start this run again by itself."""
    directory = options.directory
    write_atomically(directory.manifest, to_yaml(options.manifest).encode())
    write_json(directory.options, {"data": list(options.data), "workingDirectory": os.getcwd()})
    save_fleet(directory.fleet, fleet)


def spec_of(options: RunOptions) -> Spec:
    """The layouts are checked again when the data change, since they are arguments of the trainer, too."""
    spec = core_spec(options.manifest)
    data = hashlib.sha256(json.dumps(options.data).encode()).hexdigest()[:8]
    return replace(spec, fingerprint=f"{spec.fingerprint}-{data}")


def surroundings_of(options: RunOptions) -> Surroundings:
    spec, directory = options.manifest.spec, options.directory
    data = [argument for path in options.data for argument in ("--data", str(Path(path).resolve()))]
    trainer = TrainerCommand(
        module=spec.trainer.module,
        args=(*spec.trainer.args, *data),
        command=tuple(spec.trainer.command or ()),
        preload=tuple(spec.trainer.preload),
        environment={variable.name: variable.value for variable in spec.trainer.env},
        working_directory=spec.trainer.working_directory or os.getcwd(),
    )
    plan = {
        "version": 1,
        "run": options.manifest.metadata.name,
        "amendment": 0,
        "tokenBudget": spec.schedule.token_budget,
        "checkpointEverySteps": spec.checkpoint.every_steps,
        "checkpointEverySeconds": spec.checkpoint.every_seconds,
    }
    root = directory.root.resolve()
    checkpoints = (root / spec.checkpoint.directory).resolve()
    return Surroundings(trainer, str(checkpoints), str(directory.cache.resolve()), plan, spec.layout.ranks_per_node)
