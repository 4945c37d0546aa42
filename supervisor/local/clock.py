"""The supervisor's clock: wall time at the start, monotonic from then on, re-anchored after a jump."""

from __future__ import annotations

import time

JUMP_MS = 60_000


class LocalClock:
    """Never goes back. A wall clock that runs away by more than a minute (a laptop that slept, a clock that was
    set) is taken as an absence: `take_jump` tells how long, once.
    """

    def __init__(self, not_before_ms: int = 0) -> None:
        self._base = max(_wall_ms(), not_before_ms)
        self._started = time.monotonic_ns()
        self._offset = self._base - _wall_ms()
        self._jumps = 0

    def now_ms(self) -> int:
        now = self._base + (time.monotonic_ns() - self._started) // 1_000_000
        drift = _wall_ms() + self._offset - now
        if abs(drift) < JUMP_MS:
            return now
        if drift < 0:  # set back: our own time goes on as it was
            self._offset -= drift
            return now
        self._base += drift
        self._jumps += drift
        return now + drift

    def take_jump(self) -> int:
        """Milliseconds that passed unseen since the last call."""
        jump, self._jumps = self._jumps, 0
        return jump


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
