"""The run's directory: where everything of a local run lies, and who may write there."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

ROOM = 256 << 10  # bytes that must be free for a run to be taken up: memory, status and a little history


class RunDirectoryError(Exception):
    """The directory cannot be used; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class RunDirectory:
    root: Path

    @property
    def manifest(self) -> Path:
        return self.root / "run.yaml"

    @property
    def memory(self) -> Path:
        return self.root / "memory.json"

    @property
    def journal(self) -> Path:
        return self.root / "journal.jsonl"

    @property
    def decisions(self) -> Path:
        return self.root / "decisions.jsonl"

    @property
    def status(self) -> Path:
        return self.root / "status.json"

    @property
    def sync(self) -> Path:
        return self.root / "sync.json"

    @property
    def lock(self) -> Path:
        return self.root / "supervisor.lock"

    @property
    def fleet(self) -> Path:
        return self.root / "fleet.json"

    @property
    def options(self) -> Path:
        return self.root / "options.json"

    @property
    def requests(self) -> Path:
        return self.root / "requests"

    @property
    def chaos(self) -> Path:
        return self.root / "chaos"

    @property
    def nodes(self) -> Path:
        return self.root / "nodes"

    @property
    def cache(self) -> Path:
        return self.root / "cache"

    @property
    def log(self) -> Path:
        return self.root / "supervisor.log"

    def node(self, name: str) -> Path:
        return self.nodes / name

    def create(self) -> None:
        """Make the directory and its folders. Raises `RunDirectoryError` where that is not possible."""
        try:
            for folder in (self.root, self.requests, self.chaos, self.nodes, self.cache):
                folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.root) as probe:
                probe.write(bytes(ROOM))
                probe.flush()
        except OSError as error:
            problem = error.strerror or str(error)
            raise RunDirectoryError(
                f"{self.root}: cannot be written ({problem}); choose another with --workdir DIR"
            ) from error

    def supervisor_pid(self) -> int | None:
        """The process that supervises this run now, if one lives."""
        try:
            with self.lock.open("r") as handle:
                if _try_lock(handle, fcntl.LOCK_SH):
                    return None
                handle.seek(0)
                return int(handle.read(32) or 0) or None
        except (FileNotFoundError, ValueError):
            return None


def claim(directory: RunDirectory) -> IO[str]:
    """Become this run's one supervisor for as long as the returned file is open. Raises `RunDirectoryError`."""
    handle = directory.lock.open("a+")
    if not _try_lock(handle, fcntl.LOCK_EX):
        handle.seek(0)
        pid = handle.read(32).strip()
        handle.close()
        raise RunDirectoryError(
            f"{directory.root}: a living supervisor (pid {pid}) works on this run; "
            "watch it with marin-sup status, or choose another --workdir"
        )
    handle.seek(0)
    handle.truncate()
    handle.write(str(os.getpid()))
    handle.flush()
    return handle


def write_atomically(path: Path, data: bytes, mode: int = 0o644, durable: bool = False) -> None:
    """Replace `path` with `data`; a reader sees the old file or the new one, never half of one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any, mode: int = 0o644) -> None:
    write_atomically(path, json.dumps(value, indent=1).encode(), mode)


def _try_lock(handle: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
