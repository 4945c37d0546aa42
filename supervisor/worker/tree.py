"""What tasks may touch: the checkpoint tree below a root that the order names, and nothing above it."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def root_of(arguments: dict[str, Any]) -> Path:
    """The tree's root. Raises ValueError where the order names none."""
    root = arguments.get("root")
    if not isinstance(root, str) or not root.startswith("/"):
        raise ValueError("root: the absolute path of the checkpoint tree is needed")
    path = Path(root)
    if ".." in path.parts:
        raise ValueError("root: a path without .. is needed")
    return path


def number_of(arguments: dict[str, Any], name: str) -> int:
    value = arguments.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name}: a number is needed")
    return value
