"""How far a rank has come, by its own events: what a report says of it, and what the supervisor judges a hang by."""

from __future__ import annotations

from collections import deque
from statistics import median

from supervisor.wire.events import Event

MAX_STEP = 1 << 53
OWN_STEPS = 8  # of late, whose own work counts
MAX_OWN_SECONDS = 86_400.0


class RankProgress:
    """`entered` and `completed`: the highest steps, 0 for none. `moved`: bytes of the phase that it is in."""

    def __init__(self) -> None:
        self.phase = ""
        self.entered = self.completed = self.moved = 0
        self._own: deque[float] = deque(maxlen=OWN_STEPS)  # milliseconds

    @property
    def own_ms(self) -> int:
        """Its own work in a step, the median of the last ones: at least 1, for 0 means that it does not say."""
        return max(1, round(median(self._own))) if self._own else 0

    def note(self, event: Event) -> bool:
        """Returns whether it is the first step completed."""
        match event["event"]:
            case "phase":
                self._enter(event["phase"])
            case "progress" if event["phase"] == self.phase:
                self.moved = event["bytes"]
            case "step" if event["step"] < MAX_STEP:
                return self._step(event)
        return False

    def _enter(self, phase: str) -> None:
        if phase != self.phase:
            self.phase, self.moved = phase, 0

    def _step(self, event: Event) -> bool:
        self.entered = max(self.entered, event["step"])
        if event["state"] != "completed":
            return False
        first = self.completed == 0
        self.completed = max(self.completed, event["step"])
        if "ownSeconds" in event:
            self._own.append(1000 * min(event["ownSeconds"], MAX_OWN_SECONDS))
        return first
