"""The files of one step on disk: which there are, which are chunks of arrays, and how to make them durable."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from training.checkpoint.manifest import MANIFEST
from training.checkpoint.zarr_array import METADATA

STATE = "state"  # what Orbax writes, below the step's directory
READ_BYTES = 1 << 20


def sizes(directory: Path) -> dict[str, int]:
    """Bytes of every file below `directory`, by path with forward slashes; the manifest at its top is left out.

    So is what is no plain file: the size of a link does not tell what a reader gets. Raises OSError.
    """
    found = {
        Path(entry.path).relative_to(directory).as_posix(): entry.stat(follow_symlinks=False).st_size
        for entry in _entries(directory)
        if entry.is_file(follow_symlinks=False)
    }
    found.pop(MANIFEST, None)
    return found


def _entries(directory: Path | str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _entries(entry.path)
            else:
                yield entry


def array_of(path: str) -> str | None:
    """The name of the array that a path is the metadata of."""
    match path.split("/"):
        case [first, name, last] if first == STATE and last == METADATA:
            return name
    return None


def is_chunk(path: str) -> bool:
    """Whether a path is a chunk of an array, in zarr's default naming: `c` of a scalar, otherwise `c/0/1...`.

    A chunk checks itself when it is read, and is far too large to hash; every other file is hashed.
    """
    match path.split("/"):
        case [first, _, "c", *indices]:
            return first == STATE and all(index.isdecimal() for index in indices)
    return False


def sha256(path: Path) -> str:
    total = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(READ_BYTES):
            total.update(block)
    return total.hexdigest()


def flush(path: Path) -> None:
    """Make the bytes of a file, or the names in a directory, outlive a crash of the machine. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_directories(top: Path) -> None:
    """`flush` for `top` and every directory below it, the deepest first."""
    for directory, _, _ in os.walk(top, topdown=False):
        flush(Path(directory))
