"""Deleting checkpoints that nothing descends from any more. What is not surely ours to delete stays."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from supervisor.wire.manifest import MANIFEST, attempts_in, steps_in
from supervisor.worker.tree import number_of, root_of

REMOVING = ".removing"  # a step that is being deleted; a collection that was cut short is finished by the next one
_TEMPORARY = re.compile(r"(0|[1-9]\d{0,17})\.[A-Za-z0-9._-]+")  # what an unfinished save leaves: STEP.suffix


def collect(arguments: dict[str, Any]) -> dict[str, Any]:
    """{root, keep: [[attempt, step], ...], current} -> {removed: [[attempt, step], ...]}.

    Attempts before `current` lose every step that is not kept, finished or not. The current one loses only finished
    steps older than its newest kept one: a later one may have been committed after the order was written. Attempts
    after it are not touched.
    """
    root, current, keep = root_of(arguments), number_of(arguments, "current"), _kept(arguments.get("keep"))
    removed: list[list[int]] = []
    if not root.exists():
        return {"removed": removed}
    newest_kept = max((step for attempt, step in keep if attempt == current), default=-1)
    for attempt, directory in attempts_in(root):
        if attempt > current:
            continue
        for step, path in steps_in(directory):
            if (attempt, step) in keep:
                continue
            if attempt == current and (step >= newest_kept or not (path / MANIFEST).exists()):
                continue
            _remove(path)
            removed.append([attempt, step])
        for path in _temporaries(directory):
            if attempt < current or path.name.endswith(REMOVING):
                shutil.rmtree(path)
    return {"removed": removed}


def _kept(value: Any) -> set[tuple[int, int]]:
    if not isinstance(value, list):
        raise ValueError("keep: a list of [attempt, step] is needed")
    kept = set()
    for pair in value:
        if not (isinstance(pair, list | tuple) and len(pair) == 2 and all(type(n) is int for n in pair)):
            raise ValueError("keep: a list of [attempt, step] is needed")
        kept.add((pair[0], pair[1]))
    return kept


def _temporaries(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.iterdir()):
        if _TEMPORARY.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            yield path


def _remove(path: Path) -> None:
    """By another name first, at one blow: no survey ever sees a step that is half deleted."""
    doomed = path.with_name(path.name + REMOVING)
    if doomed.exists():
        shutil.rmtree(doomed)
    os.rename(path, doomed)
    shutil.rmtree(doomed)
