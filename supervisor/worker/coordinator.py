"""Waiting for rank 0's coordination service, for whoever is about to dial it."""

from __future__ import annotations

import socket
import time

LONGEST_SECONDS = 120.0  # then JAX dials anyhow: it has a deadline of its own (300 s) and says what is wrong
_PAUSE_SECONDS = 0.01
_CONNECT_SECONDS = 2.0


def wait_until_listening(address: str, seconds: float = LONGEST_SECONDS) -> bool:
    """Whether something listens at `address` (host:port, or [host]:port); False when it does not after `seconds`."""
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        return False
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS):
                return True
        except socket.gaierror:
            return False
        except OSError:
            time.sleep(_PAUSE_SECONDS)
    return False
