"""Joining the other ranks of the attempt, and telling the failure of a peer from an error of our own."""

from __future__ import annotations

import re

import jax
from jax._src import distributed

from training.contract import Contract

LEADER_DEADLINE_SECONDS = 3600  # the supervisor's own deadline for the phase comes first
HEARTBEAT_SECONDS = 60  # a backstop; the supervisor sees a lost process in milliseconds

_PEER_FAILED = re.compile(
    r"gloo|connection (reset|closed|refused)|broken pipe|socket closed|coordination ?service|heartbeat|barrier|peer"
    r"|UNAVAILABLE|DEADLINE_EXCEEDED",
    re.IGNORECASE,
)
_STATUS = re.compile(r"(UNKNOWN|UNAVAILABLE|INTERNAL|ABORTED|CANCELLED|DEADLINE_EXCEEDED|FAILED_PRECONDITION): ")


def join(contract: Contract) -> None:
    """Connect to the gang; a process that trains alone needs none. Touches no device.

    SIGTERM keeps its default meaning: JAX's preemption notice would swallow it, and stops come through the control
    file.
    """
    jax.config.update("jax_enable_preemption_service", False)
    jax.config.update("jax_enable_compilation_cache", False)  # why: training.compiling
    if contract.processes == 1:
        return
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        coordinator_address=contract.coordinator,
        num_processes=contract.processes,
        process_id=contract.process_id,
        heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
        coordinator_bind_address=_bind_address(contract.coordinator),
    )


def leave(contract: Contract) -> None:
    """Wait for the others, so that rank 0 and its coordination service do not go first. Only after success."""
    if contract.processes > 1:
        jax.distributed.shutdown()


def tell_gang(key: str) -> None:
    """Rank 0 says that `key` has happened. JAX has no public name for its coordination service's client."""
    client = distributed.global_state.client
    if client is not None:
        client.key_value_set(key, "done")


def hear_from_leader(key: str) -> None:
    """Wait until rank 0 has said `key`. Raises JaxRuntimeError when it died."""
    distributed.global_state.client.blocking_key_value_get(key, LEADER_DEADLINE_SECONDS * 1000)


def is_peer_failure(error: BaseException) -> bool:
    """Whether a runtime error means that another rank died. JAX raises its errors with the text of gloo or gRPC
    inside; some calls turn them into plain ValueErrors, known by the status code in front (seen with 0.10.2).
    """
    text = str(error)
    of_the_runtime = isinstance(error, jax.errors.JaxRuntimeError) or _STATUS.match(text) is not None
    return of_the_runtime and _PEER_FAILED.search(text) is not None


def _bind_address(coordinator: str | None) -> str | None:
    """On one machine only loopback is listened on; None: all interfaces, JAX's default."""
    host = (coordinator or "").rpartition(":")[0]
    return coordinator if host in ("127.0.0.1", "localhost", "[::1]") else None
