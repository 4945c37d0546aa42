"""Whether each rank runs, sleeps, is blocked in the kernel or stopped, and how many cores it uses."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from supervisor.worker.evidence.living_rank import LivingRank, Stat

WATCHED_SECONDS = 0.3  # long enough that one tick (10 ms) of CPU is no use worth speaking of
BLOCKED = "D"


def process_state(ranks: Sequence[LivingRank]) -> dict[int, dict[str, Any]]:
    """{rank: {state, cpu}}, after WATCHED_SECONDS. `cpu`: cores used meanwhile, by all threads of the process."""
    before = {rank.rank: _read(rank) for rank in ranks}
    time.sleep(WATCHED_SECONDS)
    return {rank.rank: facts for rank in ranks if (facts := _between(before[rank.rank], _read(rank)))}


def _read(rank: LivingRank) -> tuple[float, Stat] | None:
    try:
        return time.monotonic(), rank.stat()
    except OSError:
        return None  # it has ended


def _between(before: tuple[float, Stat] | None, after: tuple[float, Stat] | None) -> dict[str, Any] | None:
    if before is None or after is None:
        return None
    (began, first), (ended, last) = before, after
    # a page fault or a write is a moment in D: only who is there twice is blocked
    state = first.state if last.state == BLOCKED else last.state
    return {"state": state, "cpu": round((last.cpu_seconds - first.cpu_seconds) / (ended - began), 2)}
