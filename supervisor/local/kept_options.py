"""What a run's directory keeps of how the run was started: a run that has trained goes on with the same."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from supervisor.api.dump import to_data
from supervisor.api.load import load_run
from supervisor.api.mistakes import BadManifest
from supervisor.api.types import TrainingRun
from supervisor.core.memory import Memory, Phase
from supervisor.local.run_options import RunOptions
from supervisor.local.rundir import RunDirectory, RunDirectoryError

ASKED = ("requests", "suspend")  # of the spec: what a person asks of a run, not what the run is


@dataclass(frozen=True, slots=True)
class Kept:
    """`data`: as given, relative to `working_directory`."""

    data: tuple[str, ...]
    working_directory: str

    def absolute(self) -> tuple[str, ...]:
        return tuple(str((Path(self.working_directory) / path).resolve()) for path in self.data)


def read_kept(directory: RunDirectory) -> Kept | None:
    """None where the run was never started or the file is damaged."""
    try:
        found = json.loads(directory.options.read_text())
        return Kept(tuple(map(str, found["data"])), str(found["workingDirectory"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def going_on(options: RunOptions, memory: Memory | None) -> RunOptions:
    """`options` with the data that the run had, where none are given. Raises `RunDirectoryError` for what may not
    change any more: the data once there was an attempt, the whole manifest once the run has succeeded.
    """
    kept = read_kept(options.directory)
    had = kept.absolute() if kept is not None else None
    if had is not None and not options.data:
        options = replace(options, data=had)
    given = tuple(str(Path(path).resolve()) for path in options.data)
    if had is not None and given != had and memory is not None and memory.newest_attempt:
        reads = f"reads {', '.join(had)}; give the same --data" if had else "was started without --data; leave it out"
        raise RunDirectoryError(f"{options.directory.root}: this run {reads}, or another --workdir")
    if memory is not None and memory.phase is Phase.SUCCEEDED:
        _refuse_another_manifest(options)
    return options


def _refuse_another_manifest(options: RunOptions) -> None:
    try:
        known = load_run(options.directory.manifest)
    except (OSError, BadManifest):  # gone, damaged or of another version: nothing to compare with
        return
    if _substance(known) != _substance(options.manifest):
        raise RunDirectoryError(
            f"{options.source} differs from what this run was started with, and the run has succeeded; "
            "choose another name or --workdir"
        )


def _substance(run: TrainingRun) -> dict[str, Any]:
    spec: dict[str, Any] = to_data(run)["spec"]
    return {key: value for key, value in spec.items() if key not in ASKED}
