"""Whether a checkpoint step exists: its manifest is on disk and verifies (`$defs/manifest` of the contract).

A step without a manifest is unfinished, whatever else lies there; one whose manifest does not verify is damaged.
Data chunks carry checksums of their own; here only sizes are compared, and the hashes of the files that have one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
MAX_MANIFEST_BYTES = 256 << 20
MAX_FILES = 1_000_000
VERIFIED, DAMAGED, UNFINISHED = "verified", "damaged", "unfinished"

_ATTEMPT = re.compile(r"a(\d{4,18})")
_STEP = re.compile(r"0|[1-9]\d{0,17}")
_PARENT = re.compile(r"([1-9]\d{0,17}):(0|[1-9]\d{0,17})")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REQUIRED = {"version", "attempt", "step", "parent", "model", "files", "digest"}


class _Damaged(Exception):
    """What does not verify, in a sentence."""


@dataclass(frozen=True, slots=True)
class StepFinding:
    """`state`: verified, damaged or unfinished. `parent`: the (attempt, step) that the attempt was resumed from."""

    attempt: int
    step: int
    state: str
    reason: str = ""
    tokens: int | None = None
    parent: tuple[int, int] | None = None


def attempt_directory(root: Path, attempt: int) -> Path:
    return root / f"a{attempt:04d}"


def attempts_in(root: Path) -> Iterator[tuple[int, Path]]:
    """(number, directory) of every attempt below `root`, in order; symbolic links are not followed."""
    for entry in sorted(os.scandir(root), key=lambda e: (len(e.name), e.name)):
        match = _ATTEMPT.fullmatch(entry.name)
        number = int(match.group(1)) if match else 0
        # a padded name has one spelling, so that no two directories claim the same attempt
        if number and entry.name == f"a{number:04d}" and entry.is_dir(follow_symlinks=False):
            yield number, Path(entry.path)


def steps_in(directory: Path) -> Iterator[tuple[int, Path]]:
    """(step, directory) of every step below an attempt's directory, in order; temporary names are none."""
    found = [e for e in os.scandir(directory) if _STEP.fullmatch(e.name) and e.is_dir(follow_symlinks=False)]
    for entry in sorted(found, key=lambda e: int(e.name)):
        yield int(entry.name), Path(entry.path)


def verify_step(directory: Path, attempt: int, step: int) -> StepFinding:
    """Read and check one step. Raises OSError only where the storage itself fails."""
    try:
        raw = _read_manifest(directory / MANIFEST)
    except FileNotFoundError:
        return StepFinding(attempt, step, UNFINISHED, "no manifest")
    except _Damaged as error:
        return StepFinding(attempt, step, DAMAGED, str(error))
    try:
        manifest = _parsed(raw, attempt, step)
        _verify_files(directory, manifest["files"])
    except _Damaged as error:
        return StepFinding(attempt, step, DAMAGED, str(error))
    tokens = manifest.get("tokens")
    return StepFinding(attempt, step, VERIFIED, "", tokens, parse_parent(manifest["parent"]))


def digest(manifest: dict[str, Any]) -> str:
    """SHA-256 of the canonical JSON of all members but `digest`: keys sorted, no spaces, ASCII."""
    members = {name: value for name, value in manifest.items() if name != "digest"}
    text = json.dumps(members, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def parse_parent(text: str | None) -> tuple[int, int] | None:
    """`ATTEMPT:STEP` as numbers; None where there is none."""
    match = _PARENT.fullmatch(text) if text is not None else None
    return (int(match.group(1)), int(match.group(2))) if match else None


def _read_manifest(path: Path) -> bytes:
    info = os.lstat(path)
    if not stat.S_ISREG(info.st_mode):
        raise _Damaged("the manifest is not a regular file")
    if info.st_size > MAX_MANIFEST_BYTES:
        raise _Damaged(f"the manifest holds {info.st_size} bytes, at most {MAX_MANIFEST_BYTES} are allowed")
    return path.read_bytes()


def _parsed(raw: bytes, attempt: int, step: int) -> dict[str, Any]:
    try:
        manifest = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _Damaged("the manifest is not JSON") from error
    if not isinstance(manifest, dict) or not set(manifest) >= _REQUIRED:
        raise _Damaged("the manifest lacks members")
    if unknown := set(manifest) - _REQUIRED - {"tokens"}:
        raise _Damaged(f"the manifest has {len(unknown)} member(s) that version 1 does not know")
    if manifest["version"] != 1 or isinstance(manifest["version"], bool):
        raise _Damaged("the manifest is of another version than 1")
    if not isinstance(manifest["digest"], str) or digest(manifest) != manifest["digest"]:
        raise _Damaged("the manifest's digest does not match its content")
    if (manifest["attempt"], manifest["step"]) != (attempt, step):
        raise _Damaged("the manifest names another attempt or step than its directory")
    parent, tokens = manifest["parent"], manifest.get("tokens", 0)
    if parent is not None and (not isinstance(parent, str) or parse_parent(parent) is None):
        raise _Damaged("the manifest's parent is not ATTEMPT:STEP")
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
        raise _Damaged("the manifest's tokens are no count")
    return manifest


def _verify_files(directory: Path, files: Any) -> None:
    if not isinstance(files, list) or len(files) > MAX_FILES:
        raise _Damaged(f"the manifest's files are not a list of at most {MAX_FILES}")
    real: set[Path] = set()
    for index, entry in enumerate(files):
        if not isinstance(entry, dict) or not {"path", "bytes"} <= set(entry) <= {"path", "bytes", "sha256"}:
            raise _Damaged(f"files[{index}] is not an object of path, bytes and sha256")
        _verify_file(directory, entry, index, real)


def _verify_file(directory: Path, entry: dict[str, Any], index: int, real: set[Path]) -> None:
    name, expected = entry["path"], entry.get("sha256")
    path = _inside(directory, name, index, real)
    shown = ascii(name)[:200]
    try:
        info = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _Damaged(f"{shown} is missing") from error
    if not stat.S_ISREG(info.st_mode):
        raise _Damaged(f"{shown} is not a regular file")
    if type(entry["bytes"]) is not int or info.st_size != entry["bytes"]:
        raise _Damaged(f"{shown} holds {info.st_size} bytes, the manifest says {str(entry['bytes'])[:20]}")
    if expected is None:
        return
    if not isinstance(expected, str) or not _SHA256.fullmatch(expected):
        raise _Damaged(f"the hash of {shown} is not a SHA-256")
    if _sha256(path) != expected:
        raise _Damaged(f"the hash of {shown} does not match")


def _inside(directory: Path, name: Any, index: int, real: set[Path]) -> Path:
    """The path of a listed file; no way out of `directory`, by name or by a symbolic link on the way."""
    if not isinstance(name, str) or not 0 < len(name) <= 4096 or "\0" in name or "\\" in name:
        raise _Damaged(f"files[{index}].path is not a relative path")
    parts = name.split("/")
    if any(part in ("", ".", "..") or len(part.encode("utf-8", "surrogatepass")) > 255 for part in parts):
        raise _Damaged(f"files[{index}].path leads out of the step's directory")
    path = directory
    for part in parts[:-1]:
        path = path / part
        if path in real:
            continue
        if path.is_symlink():
            raise _Damaged(f"{ascii(name)[:200]} lies behind a symbolic link")
        real.add(path)
    return path / parts[-1]


def _sha256(path: Path) -> str:
    hasher = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            hasher.update(chunk)
    return hasher.hexdigest()
