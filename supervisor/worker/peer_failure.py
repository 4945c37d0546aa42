"""Whether an exception of a rank only says that another rank failed: then it is a follower, never the root cause."""

from __future__ import annotations

import re
from collections.abc import Iterator

from supervisor.wire.text import printable

# JAX raises jax.errors.JaxRuntimeError, an alias of XlaRuntimeError in older versions (0.4 and before). Some calls
# turn the same status into a plain ValueError or RuntimeError, seen with 0.10.2: "ValueError: UNKNOWN: Gloo AllGather
# failed: ... Connection reset by peer". The status code in front tells it from a trainer's own words.
_RUNTIME_ERRORS = ("JaxRuntimeError", "XlaRuntimeError")
_PLAIN_ERRORS = (ValueError, RuntimeError)
_STATUS = re.compile(r"(UNKNOWN|UNAVAILABLE|INTERNAL|ABORTED|CANCELLED|DEADLINE_EXCEEDED|FAILED_PRECONDITION): ")

# lower case; each is text of the library named, as seen in its source or in the report cited
_PATTERNS = (
    "connection closed by peer",  # gloo transport/tcp/pair.cc
    "connection reset by peer",  # gloo and gRPC; marin #7430
    "connection refused",  # gloo full mesh to a peer that is gone
    "gloo context initialization failed",  # XLA cpu gloo_collectives.cc; a peer did not join
    "timed out waiting",  # gloo unbound_buffer.cc: "Timed out waiting 30000ms for recv operation"
    "read timeout",  # gloo pair.cc
    "broken pipe",  # gloo pair.cc, writing to a dead peer
    "socket closed",  # gRPC from the coordination service; jax fault-tolerance docs, marin #7430
    "heartbeat timeout",  # XLA coordination_service.cc; jax #23599
    "another task died",  # XLA client.h, "Terminating process because ..."
    "barrier timed out",  # XLA coordination service, "Barrier timed out. Id: ..."; llama-2-jax #20
    "barrier failed",  # XLA coordination service: a task in the barrier is in error
    "coordination service",  # "Failed to send RPC to coordination service"
    "coordinationservice",  # type.googleapis.com/tensorflow.CoordinationServiceError
    "getkeyvalue() timed out",  # a peer never published its topology
    "remote process has exited",  # NCCL ncclRemoteError
    "nccl communicator was aborted",  # NCCL after a peer's failure
)


def peer_failure(error: BaseException) -> str | None:
    """A bounded sentence if `error`, or what it was raised from, is the failure of a peer; None otherwise."""
    for cause in _chain(error):
        text = str(cause)
        if _is_runtime_error(cause, text) and any(pattern in text.lower() for pattern in _PATTERNS):
            return printable(f"{type(cause).__name__}: {text}", 1000)
    return None


def _is_runtime_error(error: BaseException, text: str) -> bool:
    if any(kind.__name__ in _RUNTIME_ERRORS for kind in type(error).__mro__):
        return True
    return isinstance(error, _PLAIN_ERRORS) and _STATUS.match(text) is not None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(20):
        if error is None:
            return
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
