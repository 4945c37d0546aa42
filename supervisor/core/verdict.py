"""What the supervisor concluded about a fault."""

from __future__ import annotations

from dataclasses import dataclass

from supervisor.core.reasons import Reason
from supervisor.core.spec import Cause


@dataclass(frozen=True, slots=True)
class Verdict:
    """`blame`: "node r0n1", "rack r1", "code", "config", "data", "storage" or "unknown". `node`: charged, if any.

    `confidence` is between 0 and 1. `because` is one sentence for a person; `evidence` is what it rests on.
    """

    cause: Cause
    blame: str
    reason: Reason
    because: str
    confidence: float = 1.0
    evidence: tuple[str, ...] = ()
    node: str | None = None
