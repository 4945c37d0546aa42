"""Whether a change of placement is worth a restart. One function, so that a better forecast takes its place later."""

from __future__ import annotations

from statistics import median

UNKNOWN_RESTART_MS = 20 * 60_000  # what a restart of the 535B run takes today, where this run has shown none


def gained_ms(steps_left: int | None, now_ms: float, then_ms: float, restarts_ms: tuple[int, ...]) -> float | None:
    """Expected milliseconds saved until the last step by going from `now_ms` to `then_ms` per step at one restart.

    None where nobody knows how many steps are left.
    """
    if steps_left is None:
        return None
    return steps_left * (now_ms - then_ms) - restart_ms(restarts_ms)


def restart_ms(restarts_ms: tuple[int, ...]) -> float:
    """What a restart costs, from those that were measured."""
    return median(restarts_ms) if restarts_ms else UNKNOWN_RESTART_MS
