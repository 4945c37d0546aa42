"""From what a person types to a run's directory, and back to what they may type."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from supervisor.cli.exit_codes import CommandError, ExitCode
from supervisor.cli.program import NAME, PROGRAM
from supervisor.local.rundir import RunDirectory
from supervisor.wire.text import printable

RUNS_VARIABLE = "MARIN_SUP_RUNS"
_MARKS = ("run.yaml", "status.json", "memory.json", "supervisor.lock")
_SHOWN = 20


def runs_root() -> Path:
    return Path(os.environ.get(RUNS_VARIABLE) or "runs")


def find_run(text: str) -> RunDirectory:
    """The run named `text` below the runs' root, or whose directory `text` is. Raises `CommandError` for neither."""
    named = [] if text in ("", ".", "..") else [runs_root() / text]
    path = Path(text)
    for candidate in (*named, path if path.name not in ("", "..") else path.resolve()):
        if "\0" not in text and _is_run(candidate):
            return RunDirectory(candidate)
    shown, root = printable(text, 80), runs_root()
    known = [directory.root.name for directory in all_runs()]
    if not known:
        have = f"there are none in {root} (start one: marin-sup run FILE)"
    else:
        more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
        have = f"in {root} there are: {', '.join(known[:_SHOWN])}{more}"
    raise CommandError(f"no run {shown}; {have}", ExitCode.NOT_FOUND)


def all_runs() -> list[RunDirectory]:
    """Every run below the runs' root, by name; none where there is no such directory."""
    try:
        folders = sorted(runs_root().iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [RunDirectory(folder) for folder in folders if _is_run(folder)]


def spoken(directory: RunDirectory) -> str:
    """How a person names this run: by its name where that finds it, else by its path."""
    by_name = runs_root() / directory.root.name
    if by_name.resolve() == directory.root.resolve():
        return directory.root.name
    return str(directory.root)


def as_typed(text: str, name: str, directory: RunDirectory) -> str:
    """`text` of the core with its `marin-sup VERB NAME` written so that they find the run from here."""
    command = re.compile(rf"{NAME} ([a-z]+) {re.escape(name)}(?![-\w.])")
    return command.sub(lambda match: f"{PROGRAM} {match[1]} {spoken(directory)}", text)


def _is_run(path: Path) -> bool:
    try:
        return any((path / mark).is_file() for mark in _MARKS)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise
