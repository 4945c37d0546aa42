"""Whether a step is on disk as it was saved. Hashes the metadata alone: chunks check themselves when they are read."""

from __future__ import annotations

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
    try:
        manifest = manifests.read(directory / MANIFEST)
        if (manifest.attempt, manifest.step) != (attempt, step):
            raise manifests.Unreadable(f"is that of another checkpoint, {manifest.attempt}:{manifest.step}")
    except manifests.Unreadable as error:
        raise CheckpointDamaged(attempt, step, f"its manifest {error}") from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CheckpointDamaged(attempt, step, f"it was never finished: {directory} has no manifest") from error
    except IsADirectoryError as error:
        raise CheckpointDamaged(attempt, step, "its manifest is a directory") from error
    wrong = _first_difference(directory, manifest)
    if wrong is not None:
        raise CheckpointDamaged(attempt, step, wrong)
    return Verified(manifest, _arrays(directory, manifest))


def _first_difference(directory: Path, manifest: Manifest) -> str | None:
    """What is wrong with the files, in words."""
    found = step_files.sizes(directory)
    for file in manifest.files:
        wrong = _difference(directory, file, found.pop(file.path, None))
        if wrong is not None:
            return wrong
    unlisted = sorted(path for path in found if path.startswith(step_files.STATE + "/"))
    return f"{unlisted[0]} is not in its manifest" if unlisted else None


def _difference(directory: Path, file: File, size: int | None) -> str | None:
    if size is None:
        return f"{file.path} is missing"
    if size != file.bytes:
        return f"{file.path} has {size} bytes instead of {file.bytes}"
    if step_files.is_chunk(file.path):
        return None
    if file.sha256 is None:
        return f"{file.path} has no hash in its manifest"
    if step_files.sha256(directory / file.path) != file.sha256:
        return f"the content of {file.path} has changed"
    if step_files.array_of(file.path) is not None and not _checks_itself(directory / file.path):
        return f"{file.path} describes chunks without checksums, whose damage could not be noticed"
    return None


def _checks_itself(path: Path) -> bool:
    try:
        return zarr_array.parse(path.read_bytes()).chunks_checked
    except ValueError:
        return False


def _arrays(directory: Path, manifest: Manifest) -> dict[str, ZarrArray]:
    paths = {step_files.array_of(file.path): file.path for file in manifest.files}
    return {name: zarr_array.parse((directory / path).read_bytes()) for name, path in paths.items() if name is not None}
