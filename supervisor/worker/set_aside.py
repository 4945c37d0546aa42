"""A damaged checkpoint is kept for whoever wants to know why, out of the way of surveys and collection."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from supervisor.wire.manifest import attempt_directory
from supervisor.worker.tree import number_of, root_of

ASIDE = "set-aside"


def set_aside(arguments: dict[str, Any]) -> dict[str, Any]:
    """{root, attempt, step} -> {moved_to}, below ROOT/set-aside. Null where the step is not there (any more)."""
    root, attempt, step = root_of(arguments), number_of(arguments, "attempt"), number_of(arguments, "step")
    source = attempt_directory(root, attempt) / str(step)
    if source.is_symlink():
        raise ValueError(f"{source} is a symbolic link")
    if not source.is_dir():
        return {"moved_to": None}
    target = _free_name(root / ASIDE / source.parent.name, str(step))
    os.rename(source, target)
    return {"moved_to": str(target)}


def _free_name(directory: Path, name: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    target, number = directory / name, 1
    while target.exists():
        target, number = directory / f"{name}.{number}", number + 1
    return target
