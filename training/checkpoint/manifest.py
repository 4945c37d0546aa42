"""The manifest of one step: its text, its digest, and reading it back as untrusted input (schema `$defs/manifest`).

The digest is sha256 over the JSON of all other members, written with sorted keys, separators "," and ":" and ASCII
only:
`json.dumps(members, sort_keys=True, separators=(",", ":"), ensure_ascii=True)`.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

MANIFEST = "manifest.json"
MANIFEST_BYTES_MAX = 256 << 20  # a million files of some 200 bytes each
FILES_MAX = 1_000_000
PATH_LENGTH_MAX = 4096

_REQUIRED = {"version", "attempt", "step", "parent", "model", "files", "digest"}
_ALLOWED = _REQUIRED | {"tokens"}
_HASH = re.compile(r"[0-9a-f]{64}")
_PARENT = re.compile(r"[1-9][0-9]*:[0-9]+")


class Unreadable(Exception):
    """The text is no manifest; the message completes "its manifest ..."."""


@dataclass(frozen=True, slots=True)
class File:
    path: str  # relative to the step's directory
    bytes: int
    sha256: str | None  # None: chunks with checksums of their own


@dataclass(frozen=True, slots=True)
class Manifest:
    attempt: int
    step: int
    parent: str | None  # "ATTEMPT:STEP"
    model: str  # fingerprint of what must agree for the state to be loadable
    tokens: int
    files: tuple[File, ...]

    def text(self) -> str:
        members = {
            "version": 1,
            "attempt": self.attempt,
            "step": self.step,
            "parent": self.parent,
            "model": self.model,
            "tokens": self.tokens,
            "files": [{"path": file.path, "bytes": file.bytes, "sha256": file.sha256} for file in self.files],
        }
        return json.dumps(members | {"digest": digest(members)}, indent=1)  # and no newline: every byte counts


def step_directory(root: Path, attempt: int, step: int) -> Path:
    return root / f"a{attempt:04d}" / str(step)


def digest(members: dict[str, Any]) -> str:
    """sha256, in hex, of the canonical JSON of a manifest without its digest."""
    text = json.dumps(members, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def read(path: Path) -> Manifest:
    """Raises FileNotFoundError when there is none, Unreadable when it is no whole manifest, OSError."""
    with path.open("rb") as file:
        data = file.read(MANIFEST_BYTES_MAX + 1)
    if len(data) > MANIFEST_BYTES_MAX:
        raise Unreadable(f"is larger than {MANIFEST_BYTES_MAX} bytes")
    try:
        members = json.loads(data.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise Unreadable("is truncated or not JSON") from error
    return parse(members)


def parse(members: Any) -> Manifest:
    """Check every member and the digest. Raises Unreadable."""
    if not isinstance(members, dict) or not members.keys() >= _REQUIRED or not members.keys() <= _ALLOWED:
        raise Unreadable("does not have the members of a manifest")
    if members["version"] != 1:
        raise Unreadable("has a version that this program does not know")
    rest = {name: value for name, value in members.items() if name != "digest"}
    try:
        whole = digest(rest) == members["digest"]
    except RecursionError as error:
        raise Unreadable("is nested too deeply") from error
    if not whole:
        raise Unreadable("does not match its own digest")
    parent, model, tokens = members["parent"], members["model"], members.get("tokens", 0)
    if not (
        _whole(members["attempt"], 1) and _whole(members["step"], 0) and _whole(tokens, 0) and isinstance(model, str)
    ):
        raise Unreadable("has an attempt, step, model or token count of the wrong kind")
    if parent is not None and not (isinstance(parent, str) and _PARENT.fullmatch(parent)):
        raise Unreadable("has a parent that is no ATTEMPT:STEP")
    return Manifest(members["attempt"], members["step"], parent, model, tokens, _files(members["files"]))


def _files(entries: Any) -> tuple[File, ...]:
    if not isinstance(entries, list) or not 0 < len(entries) <= FILES_MAX:
        raise Unreadable(f"must list between 1 and {FILES_MAX} files")
    files = tuple(_file(entry) for entry in entries)
    if len({file.path for file in files}) != len(files):
        raise Unreadable("lists a file twice")
    return files


def _file(entry: Any) -> File:
    if not isinstance(entry, dict) or not {"path", "bytes"} <= entry.keys() <= {"path", "bytes", "sha256"}:
        raise Unreadable("has a file entry with the wrong members")
    path, size, sha256 = entry["path"], entry["bytes"], entry.get("sha256")
    if not isinstance(path, str) or not _inside(path) or not _whole(size, 0):
        raise Unreadable("has a file entry with a bad path or size")
    if sha256 is not None and not (isinstance(sha256, str) and _HASH.fullmatch(sha256)):
        raise Unreadable("has a file entry with a bad hash")
    return File(path, size, sha256)


def _inside(path: str) -> bool:
    if not 0 < len(path) <= PATH_LENGTH_MAX or "\0" in path or path.startswith("/"):
        return False
    return ".." not in PurePosixPath(path).parts and str(PurePosixPath(path)) == path


def _whole(value: Any, low: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= low
