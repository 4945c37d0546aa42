"""Sealing a step: once its data is on disk, look at it, list it, and write the manifest that makes it count."""

from __future__ import annotations

import os
from pathlib import Path

from training.checkpoint import step_files, zarr_array
from training.checkpoint.chunk_codec import ChecksumMissing
from training.checkpoint.manifest import MANIFEST, File, Manifest, step_directory


def seal(root: Path, attempt: int, step: int, parent: str | None, model: str, tokens: int) -> int:
    """Write the manifest of a step whose data is complete; returns the bytes of its files. One rank alone calls it.

    A manifest never outlives data that a crash lost: TensorStore syncs every chunk and zarr.json itself (its
    `file_io_sync`), the few other files and all directories are synced here, before the manifest gets its name.
    Raises OSError, and ChecksumMissing where the chunks carry no checksum: then no manifest is written.
    """
    directory = step_directory(root, attempt, step)
    sizes = step_files.sizes(directory)
    require_checksums(directory, sizes)
    files = [_file(directory, path, size) for path, size in sorted(sizes.items())]
    step_files.flush_directories(directory)
    step_files.flush(directory.parent)
    step_files.flush(root)
    _write(directory, Manifest(attempt, step, parent, model, tokens, tuple(files)).text())
    return sum(sizes.values())


def require_checksums(directory: Path, paths: dict[str, int]) -> None:
    """Raises ChecksumMissing unless every array below `directory` was written with a checksum in each chunk."""
    arrays = [path for path in paths if step_files.array_of(path) is not None]
    if not arrays:
        raise ChecksumMissing(f"Orbax wrote no zarr3 array below {directory}; is this version of Orbax a known one?")
    for path in arrays:
        if not zarr_array.parse((directory / path).read_bytes()).chunks_checked:
            raise ChecksumMissing(
                f"{directory / path} has no crc32c in the codecs of its chunks, "
                "so damage to them would never be noticed; "
                "this version of Orbax builds its metadata elsewhere (see training/checkpoint/chunk_codec.py)"
            )


def _file(directory: Path, path: str, size: int) -> File:
    if step_files.is_chunk(path):
        return File(path, size, None)
    step_files.flush(directory / path)
    return File(path, size, step_files.sha256(directory / path))


def _write(directory: Path, text: str) -> None:
    """Under another name first: a manifest is whole or not there."""
    unfinished = directory / (MANIFEST + ".unfinished")
    with unfinished.open("wb") as file:
        file.write(text.encode("ascii"))
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(directory / MANIFEST)
    step_files.flush(directory)
