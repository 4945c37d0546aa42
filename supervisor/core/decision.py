"""One pass of the core: what it is given, what it has concluded so far, and what it says in the end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from supervisor.core.actions import Action
from supervisor.core.incident import Incident
from supervisor.core.memory import Attempt, Memory
from supervisor.core.observation import Observation
from supervisor.core.reasons import Reason
from supervisor.core.spec import Spec


@dataclass(frozen=True, slots=True)
class Note:
    """Something worth telling, once: it becomes an event, a line in the journal and in `explain`."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Decision:
    """`incidents`: those that this pass opened, changed or closed. `requeue_after_ms`: None waits for news alone."""

    memory: Memory
    actions: tuple[Action, ...] = ()
    notes: tuple[Note, ...] = ()
    incidents: tuple[Incident, ...] = ()
    requeue_after_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Pass:
    """Handed from phase to phase; each returns a new one."""

    spec: Spec
    obs: Observation
    now: int
    memory: Memory
    actions: tuple[Action, ...] = ()
    notes: tuple[Note, ...] = ()
    incidents: tuple[Incident, ...] = ()
    wake_ms: int | None = None

    def remember(self, **changes: Any) -> Pass:
        return replace(self, memory=replace(self.memory, **changes))

    def with_attempt(self, attempt: Attempt, **changes: Any) -> Pass:
        return self.remember(attempt=replace(attempt, **changes))

    def record(self, incident: Incident | None, changed: Incident) -> Pass:
        """Keep `incident` as the open one (None: none is open any more) and tell of the one that changed."""
        return replace(self.remember(incident=incident), incidents=(*self.incidents, changed))

    def note(self, reason: Reason, message: str) -> Pass:
        return replace(self, notes=(*self.notes, Note(reason, message)))

    def ask(self, *actions: Action) -> Pass:
        return replace(self, actions=(*self.actions, *actions))

    def say(self, reason: Reason, message: str) -> Pass:
        """Why the run is where it is; shown until something else is said."""
        return self.remember(reason=reason, message=message)

    def wake(self, at_ms: int) -> Pass:
        earliest = at_ms if self.wake_ms is None else min(self.wake_ms, at_ms)
        return replace(self, wake_ms=earliest)

    def decision(self) -> Decision:
        after = None if self.wake_ms is None else max(0, self.wake_ms - self.now)
        return Decision(self.memory, self.actions, self.notes, self.incidents, after)
