"""Whether a step is on disk as it was saved. Hashes the metadata alone: chunks check themselves when they are read."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from training.checkpoint import manifest as manifests
from training.checkpoint import step_files, zarr_array
from training.checkpoint.manifest import MANIFEST, File, Manifest, step_directory
from training.checkpoint.refusal import CheckpointDamaged
from training.checkpoint.zarr_array import ZarrArray


@dataclass(frozen=True, slots=True)
class Verified:
    manifest: Manifest
    arrays: dict[str, ZarrArray]  # by name


def verify(root: Path, attempt: int, step: int) -> None:
    """Raises CheckpointDamaged unless the step was finished and every file of it is there with its size and hash.

    OSError when storage cannot be read at all. Files that the manifest does not list are refused below `state/`, where
    a reader could take one for a chunk; beside it (a manifest that was never finished, a stale temporary directory of
    Orbax) nobody reads.
    """
    verified(root, attempt, step)


def verified(root: Path, attempt: int, step: int) -> Verified:
    """`verify`, and what was learnt on the way."""
    directory = step_directory(root, attempt, step)
    manifest = _manifest(directory, attempt, step)
    try:
        return Verified(manifest, _compared(directory, manifest))
    except _Wrong as error:
        raise CheckpointDamaged(attempt, step, str(error)) from error
    except FileNotFoundError as error:
        raise CheckpointDamaged(attempt, step, f"{error.filename} went missing while it was read") from error


def _manifest(directory: Path, attempt: int, step: int) -> Manifest:
    try:
        manifest = manifests.read(directory / MANIFEST)
    except manifests.Unreadable as error:
        raise CheckpointDamaged(attempt, step, f"its manifest {error}") from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CheckpointDamaged(attempt, step, f"it was never finished: {directory} has no manifest") from error
    except IsADirectoryError as error:
        raise CheckpointDamaged(attempt, step, "its manifest is a directory") from error
    if (manifest.attempt, manifest.step) != (attempt, step):
        other = f"{manifest.attempt}:{manifest.step}"
        raise CheckpointDamaged(attempt, step, f"its manifest is that of another checkpoint, {other}")
    return manifest


class _Wrong(Exception):
    """What is wrong with the files, in words."""


def _compared(directory: Path, manifest: Manifest) -> dict[str, ZarrArray]:
    """Compare every file with its entry; returns the arrays by name. Raises _Wrong, OSError."""
    found = step_files.sizes(directory)
    arrays: dict[str, ZarrArray] = {}
    for file in manifest.files:
        _require_size(file, found.pop(file.path, None))
        if step_files.is_chunk(file.path):
            continue
        name = step_files.array_of(file.path)
        if name is None:
            _require_hash(file, step_files.sha256(directory / file.path))
        else:
            arrays[name] = _array(directory, file)
    for path in sorted(found):
        if path.startswith(step_files.STATE + "/"):
            raise _Wrong(f"{path} is not in its manifest")
    return arrays


def _require_size(file: File, size: int | None) -> None:
    if size is None:
        raise _Wrong(f"{file.path} is missing")
    if size != file.bytes:
        raise _Wrong(f"{file.path} has {size} bytes instead of {file.bytes}")


def _require_hash(file: File, sha256: str) -> None:
    if file.sha256 is None:
        raise _Wrong(f"{file.path} has no hash in its manifest")
    if sha256 != file.sha256:
        raise _Wrong(f"the content of {file.path} has changed")


def _array(directory: Path, file: File) -> ZarrArray:
    if file.bytes > zarr_array.METADATA_BYTES_MAX:
        raise _Wrong(f"{file.path} is too large to describe an array")
    text = (directory / file.path).read_bytes()
    _require_hash(file, hashlib.sha256(text).hexdigest())
    try:
        array = zarr_array.parse(text)
    except ValueError as error:
        raise _Wrong(f"{file.path} is {error}") from error
    if not array.chunks_checked:
        raise _Wrong(f"{file.path} describes chunks without checksums, whose damage could not be noticed")
    return array
