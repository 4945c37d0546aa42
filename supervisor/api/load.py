"""A manifest file to a `TrainingRun`."""

from __future__ import annotations

import os
from dataclasses import replace

from supervisor.api.mistakes import BadManifest, Location, Mistake
from supervisor.api.types import TrainingRun
from supervisor.api.validation import parse_run
from supervisor.api.yaml_source import Source, read_yaml

MAX_BYTES = 1 << 20


def load_run(path: str | os.PathLike[str]) -> TrainingRun:
    """Read the one TrainingRun in the YAML or JSON file at `path`. Raises `BadManifest` with every mistake in it."""
    return parse_text(_text(path))


def parse_text(text: str) -> TrainingRun:
    """The TrainingRun that `text` describes. Raises `BadManifest` with every mistake in it, in order of lines."""
    source = read_yaml(text)
    try:
        run = parse_run(source.data, frozenset(source.unreadable))
    except BadManifest as bad:
        order = {at: number for number, at in enumerate(source.lines)}
        mistakes = sorted([*source.mistakes, *bad.mistakes], key=lambda mistake: order[_written(mistake.at, source)])
        lines = [mistake.line or source.lines[_written(mistake.at, source)] for mistake in mistakes]
        placed = [replace(mistake, line=line) for mistake, line in zip(mistakes, lines, strict=True)]
        raise BadManifest(placed) from None
    if source.mistakes:
        raise BadManifest(source.mistakes)
    return run


def _written(at: Location, source: Source) -> Location:
    """`at`, or where the field itself is missing the nearest place that encloses it."""
    return next(at[:length] for length in range(len(at), -1, -1) if at[:length] in source.lines)


def _text(path: str | os.PathLike[str]) -> str:
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _unusable("no such file") from None
    except IsADirectoryError:
        raise _unusable("found a directory, allowed a file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _unusable(f"cannot be read: {reason}") from None
    if len(content) > MAX_BYTES:
        raise _unusable(f"found more than {MAX_BYTES} bytes, allowed at most that (1 MiB)")
    if 0 in content:
        raise _unusable(f"not a text file: found a zero byte at offset {content.index(0)}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unusable(f"not UTF-8 text: found the byte {content[error.start]:#04x} at offset {error.start}") from None


def _unusable(text: str) -> BadManifest:
    return BadManifest([Mistake((), text)])
