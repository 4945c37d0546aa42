"""Hand-made checkpoint trees: the manifest's rules written down a second time, independently of the code under test."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

FILES = {"d/0/data": b"weights" * 100, "_METADATA": b'{"tree": 1}', "empty": b""}


def make_step(root: Path, attempt: int, step: int, parent: str | None = None, tokens: int = 10) -> Path:
    directory = root / f"a{attempt:04d}" / str(step)
    for name, data in FILES.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(data)
    listed = [
        {"path": name, "bytes": len(data), "sha256": None if name == "d/0/data" else hashlib.sha256(data).hexdigest()}
        for name, data in FILES.items()
    ]
    manifest = {
        "version": 1,
        "attempt": attempt,
        "step": step,
        "parent": parent,
        "model": "m",
        "tokens": tokens,
        "files": listed,
    }
    write_manifest(directory, manifest)
    return directory


def write_manifest(directory: Path, manifest: dict[str, Any]) -> None:
    members = {name: value for name, value in manifest.items() if name != "digest"}
    canonical = json.dumps(members, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    text = json.dumps({**members, "digest": hashlib.sha256(canonical).hexdigest()}, indent=1)
    (directory / "manifest.json").write_text(text)


def amend(directory: Path, **members: Any) -> None:
    """Change members and sign again, as a buggy or hostile writer could."""
    write_manifest(directory, {**json.loads((directory / "manifest.json").read_text()), **members})
