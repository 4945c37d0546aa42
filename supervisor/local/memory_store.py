"""Memory on disk: a file replaced atomically, with the one before it kept, each under a checksum."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from supervisor.api.records import BadRecord, from_json, to_json
from supervisor.core.memory import VERSION, Memory
from supervisor.local.rundir import write_atomically

MAX_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Loaded:
    """`memory` is None where there is none to be had. `loss` says what could not be used, in a sentence."""

    memory: Memory | None
    loss: str = ""


class NewerMemory(Exception):
    """The memory was written by a newer version: this one may look, but not act."""


class MemoryStore:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._previous = path.with_suffix(".previous.json")

    def save(self, memory: Memory) -> None:
        body = to_json(memory)
        line = hashlib.sha256(body).hexdigest().encode() + b"\n" + body
        if self._path.exists():
            self._keep_previous()
        write_atomically(self._path, line, durable=True)

    def load(self) -> Loaded:
        """The newest memory that is whole; the one before it where the newest is damaged. Raises `NewerMemory`."""
        if not self._path.exists() and not self._previous.exists():
            return Loaded(None)
        memory, problem = _read(self._path)
        if memory is not None:
            return Loaded(memory)
        older, older_problem = _read(self._previous)
        if older is not None:
            return Loaded(older, f"{problem}; the memory before it (revision {older.revision}) is used")
        return Loaded(None, f"{problem}; {older_problem}; what workers and checkpoints show is used instead")

    def _keep_previous(self) -> None:
        self._previous.unlink(missing_ok=True)
        os.link(self._path, self._previous)


def _read(path: Path) -> tuple[Memory | None, str]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES)
    except OSError as error:
        return None, f"{path.name} cannot be read ({error.strerror})"
    checksum, _, body = data.partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != checksum:
        return None, f"{path.name} is damaged (its checksum does not fit)"
    try:
        _refuse_newer(path, body)
        return from_json(Memory, body), ""
    except BadRecord as error:
        return None, f"{path.name} is damaged ({error})"


def _refuse_newer(path: Path, body: bytes) -> None:
    """Before the fields are read: a newer version may have some that we do not know. Raises `NewerMemory`."""
    version = json.loads(body).get("version")
    if isinstance(version, int) and version > VERSION:
        raise NewerMemory(
            f"{path}: written by a newer marin-sup (memory version {version}, known: {VERSION}); update this one"
        )
