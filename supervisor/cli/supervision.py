"""Supervising a run in the foreground: what `run`, `demo`, `resume` and `stop` have in common."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from supervisor.api.load import load_run
from supervisor.api.mistakes import BadManifest
from supervisor.api.types import TrainingRun
from supervisor.cli.exit_codes import CommandError, ExitCode
from supervisor.cli.run_lookup import spoken
from supervisor.cli.silence import silence_stdout
from supervisor.core.memory import Memory, Phase
from supervisor.local.fleet import BadFleet
from supervisor.local.memory_store import NewerMemory
from supervisor.local.rundir import RunDirectory, RunDirectoryError

if TYPE_CHECKING:
    from supervisor.local.run_options import RunOptions
    from supervisor.local.screen import Screen

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Finished:
    """`code`: what the command should exit with."""

    memory: Memory
    code: ExitCode


def load_manifest(path: Path) -> TrainingRun:
    """Raises `CommandError` with one line per mistake."""
    try:
        return load_run(path)
    except BadManifest as bad:
        lines = bad.lines()
        count = f"{len(bad.mistakes)} mistakes" if len(bad.mistakes) > 1 else "a mistake"
        raise CommandError("\n".join([f"{path}: {count}", *(f"  {line}" for line in lines)]), ExitCode.USAGE) from None


def options_of(directory: RunDirectory) -> RunOptions:
    """What the run was last started with, for starting it again. Changes into the directory that it was started from.

    Raises `CommandError` where the run was never started or its directory is gone.
    """
    from supervisor.local.kept_options import Kept, read_kept
    from supervisor.local.run_options import RunOptions

    absolute = RunDirectory(directory.root.resolve())
    if not absolute.manifest.exists():
        raise CommandError(f"{directory.root} holds no run.yaml; start it with: marin-sup run FILE", ExitCode.NOT_FOUND)
    manifest = load_manifest(absolute.manifest)
    kept = read_kept(absolute) or Kept((), os.getcwd())
    try:
        os.chdir(kept.working_directory)
    except OSError as error:
        raise CommandError(
            f"the run was started in {kept.working_directory}, which cannot be entered ({error.strerror}); "
            f"start it elsewhere: marin-sup run {absolute.manifest} --workdir {absolute.root}",
            ExitCode.NOT_FOUND,
        ) from None
    return RunOptions(manifest, absolute, data=kept.data)


def supervise_here(options: RunOptions, shown_as: RunDirectory) -> Finished:
    """Supervise to the end, with a screen that suits stdout, and print the summary. Raises `CommandError`.

    `shown_as`: the directory as the user named it.
    """
    from supervisor.local.chaos import BadChaos
    from supervisor.local.supervise import AlreadySucceeded, supervise

    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    try:
        memory = supervise(options, _screen(options, shown_as, terminal), hold_screen=terminal)
    except AlreadySucceeded as over:
        _print_summary(options, shown_as, over.memory, f"{spoken(shown_as)} succeeded earlier; nothing was started")
        return Finished(over.memory, ExitCode.OK)
    except (RunDirectoryError, BadFleet, BadChaos, NewerMemory) as error:
        raise CommandError(str(error), ExitCode.USAGE) from None
    _print_summary(options, shown_as, memory)
    return Finished(memory, code_of(memory))


def code_of(memory: Memory) -> ExitCode:
    """A run that is none of these was interrupted twice."""
    codes = {
        Phase.SUCCEEDED: ExitCode.OK,
        Phase.SUSPENDED: ExitCode.OK,
        Phase.HELD: ExitCode.HELD,
        Phase.FAILED: ExitCode.FAILED,
    }
    return codes.get(memory.phase, ExitCode.INTERRUPTED)


def _screen(options: RunOptions, shown_as: RunDirectory, terminal: bool) -> Screen:
    from supervisor.api.convert import core_spec

    if terminal:
        from supervisor.cli.screen.live import LiveScreen

        return LiveScreen(core_spec(options.manifest), shown_as)
    from supervisor.cli.screen.plain import PlainScreen

    return PlainScreen(options.manifest.metadata.name, shown_as)


def _print_summary(options: RunOptions, shown_as: RunDirectory, memory: Memory, before: str = "") -> None:
    from supervisor.cli.screen.summary import summary
    from supervisor.local.history import read_history

    history = read_history(options.directory.journal)
    incidents = [history.incidents[number] for number in sorted(history.incidents)]
    name = options.manifest.metadata.name
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    lines = summary(shown_as, name, memory, history.progress, incidents, width)
    try:
        click.echo("\n".join([before, *lines]))
    except BrokenPipeError:  # nobody reads any more (`| head`); the exit code still says how it ended
        silence_stdout()
    except OSError as error:
        log.warning("the summary could not be written: %s", error)
