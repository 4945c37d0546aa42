"""Text as byte tokens. The rows of a step are a pure function of (seed, step), and a rank reads only its own.

A corpus is an index of files (path, offset, size); rows are read from the files when they are needed. Files are joined
with one zero byte between them. Sample ids count rows since step 0: step s uses ids s x B to s x B + B - 1, whatever
the layout. Each pass over the corpus (an epoch) visits every training window once, in an order of its own.
"""

from __future__ import annotations

import os
import sysconfig
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from training.config import Data
from training.outcome import DataError
from training.permutation import permute

TEXT_PROBE_BYTES = 8192  # a zero byte this early means a binary file (the rule that git uses)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Files in order. File i occupies bytes starts[i] to starts[i] + sizes[i], then one separating zero byte."""

    files: tuple[Path, ...]
    sizes: tuple[int, ...]
    starts: tuple[int, ...]
    size: int  # of all files and separators

    def read(self, offset: int, length: int) -> bytes:
        """`length` bytes of the joined files. Raises DataError where a file vanished or changed its size."""
        pieces: list[bytes] = []
        index = bisect_right(self.starts, offset) - 1
        while length > 0:
            inside = offset - self.starts[index]
            piece = (self._read_file(index, inside, min(length, self.sizes[index] - inside)) + b"\0")[:length]
            pieces.append(piece)
            offset, length, index = offset + len(piece), length - len(piece), index + 1
        return b"".join(pieces)

    def _read_file(self, index: int, offset: int, length: int) -> bytes:
        try:
            with self.files[index].open("rb", buffering=0) as file:
                found = os.pread(file.fileno(), length, offset) if length else b""
        except OSError as error:
            raise DataError(f"{self.files[index]}: cannot be read any more: {error.strerror}") from error
        if len(found) != length:
            raise DataError(
                f"{self.files[index]}: became shorter while training; data files must not change during a run"
            )
        return found


@dataclass(frozen=True, slots=True)
class Batches:
    """Rows of tokens by sample id. A row has sequence + 1 tokens: inputs, and targets one further."""

    corpus: Corpus
    sequence: int
    heldout_every: int
    seed: int

    @property
    def windows(self) -> int:
        return (self.corpus.size - 1) // self.sequence

    @property
    def heldout_windows(self) -> int:
        return self.windows // self.heldout_every

    def train_rows(self, ids: Iterable[int]) -> np.ndarray:
        """int32 [rows, sequence + 1] of training samples `ids`."""
        windows = self.windows - self.heldout_windows
        places = ((i // windows, i % windows) for i in ids)
        chosen = (permute(position, windows, (self.seed, epoch)) for epoch, position in places)
        return self._rows(w + w // (self.heldout_every - 1) for w in chosen)  # skip every held-out window

    def heldout_rows(self, ids: Iterable[int]) -> np.ndarray:
        """int32 [rows, sequence + 1] of held-out samples `ids`, spread over the corpus in a fixed order."""
        windows = self.heldout_windows
        chosen = (permute(i % windows, windows, (0, 0)) for i in ids)
        return self._rows(self.heldout_every * w + self.heldout_every - 1 for w in chosen)

    def _rows(self, windows: Iterable[int]) -> np.ndarray:
        texts = [self.corpus.read(w * self.sequence, self.sequence + 1) for w in windows]
        return np.frombuffer(b"".join(texts), np.uint8).reshape(len(texts), self.sequence + 1).astype(np.int32)


def open_batches(paths: tuple[Path, ...], data: Data, seed: int) -> Batches:
    """Index the text below `paths` (default: the Python standard library's sources). Raises DataError."""
    corpus = index_files(text_files(paths), data.max_bytes)
    batches = Batches(corpus, data.sequence, data.heldout_every, seed)
    if batches.heldout_windows < 1:
        needed = data.sequence * data.heldout_every + 1
        named = ", ".join(str(p) for p in paths) or "the default text"
        raise DataError(
            f"{named}: {corpus.size} bytes of text, but one held-out window needs {needed}; give more with --data"
        )
    return batches


def text_files(paths: tuple[Path, ...]) -> list[Path]:
    """All files of `paths`, folders searched in sorted order without hidden names. Raises DataError."""
    if not paths:
        return _standard_library()
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found.extend(p for p in _walk(path, _hidden) if p.is_file())
        elif path.exists():
            found.append(path)
        else:
            raise DataError(f"{path}: no such file or folder; name text files or folders with --data")
    if not found:
        raise DataError(f"{', '.join(map(str, paths))}: no files inside; name text files or folders with --data")
    return found


def _standard_library() -> list[Path]:
    """The sources that every Python brings. Left out: what others installed, and tests (17 of 30 MB)."""
    root = Path(sysconfig.get_paths()["stdlib"])
    skipped = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "__pycache__"}
    found = [p for p in _walk(root, skipped.__contains__) if p.suffix == ".py"]
    if not found:
        raise DataError(
            f"{root}: this Python has no sources of its standard library; name text files or folders with --data"
        )
    return found


def _walk(root: Path, skip: Callable[[str], bool]) -> list[Path]:
    """All below `root`, sorted. What is skipped is not looked into: below a site-packages there may be far more."""
    found: list[Path] = []
    for folder, inside, names in os.walk(root):
        inside[:] = [name for name in inside if not skip(name)]
        found += [Path(folder, name) for name in names if not skip(name)]
    return sorted(found)


def _hidden(name: str) -> bool:
    return name.startswith(".")


def index_files(files: list[Path], max_bytes: int) -> Corpus:
    """Index `files` up to `max_bytes`. Empty files among others are left out; a binary file is refused. Raises
    DataError.
    """
    kept: list[tuple[Path, int]] = []
    total = 0
    for path in files:
        size = _text_size(path)
        if size:
            kept.append((path, min(size, max_bytes - total)))
            total += kept[-1][1] + 1
        if total >= max_bytes:
            break
    if not kept:
        raise DataError(f"{', '.join(map(str, files[:3]))}: empty; name files with text in them with --data")
    starts = np.cumsum([0] + [size + 1 for _, size in kept[:-1]]).tolist()
    return Corpus(tuple(path for path, _ in kept), tuple(size for _, size in kept), tuple(starts), total)


def _text_size(path: Path) -> int:
    try:
        with path.open("rb", buffering=0) as file:
            if b"\0" in file.read(TEXT_PROBE_BYTES):
                raise DataError(f"{path}: a binary file (it holds zero bytes); name text files with --data")
            return os.fstat(file.fileno()).st_size
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
