"""Where the supervisor listens: a small file that it replaces whenever it starts, and that workers read again.

The file holds JSON `{host, port, token}` with mode 0600, since the token is all that a local worker proves itself by.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from supervisor.wire.json_file import read_json

MAX_BYTES = 64 * 1024


class NoAddress(Exception):
    """The file is missing, unreadable or malformed: the supervisor is not there (yet)."""


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int
    token: str


def write_address(path: Path, address: Address) -> None:
    """Replace the file atomically; readable by its owner alone."""
    text = json.dumps({"host": address.host, "port": address.port, "token": address.token})
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)


def read_address(path: Path) -> Address:
    """Raises `NoAddress` with a sentence that names the file and what is wrong with it."""
    try:
        others = stat.S_IMODE(path.stat().st_mode) & 0o077
        data = read_json(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        raise NoAddress(f"{path}: the supervisor's address cannot be read: {error}") from error
    if others:
        raise NoAddress(f"{path}: others can read the token; make it mode 0600")
    host, port, token = (data.get(key) for key in ("host", "port", "token")) if isinstance(data, dict) else (None,) * 3
    if not (isinstance(host, str) and isinstance(token, str) and type(port) is int and 0 < port < 65536):
        raise NoAddress(f"{path}: holds no address; expected an object with host, port and token")
    return Address(host, port, token)
