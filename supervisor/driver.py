"""One loop for every host: observe, decide, persist memory, act, wait.

Memory is persisted before anything is asked for: a crash between the two is harmless, since the next pass sees the
action missing and asks again. The ports below are all that a host has to bring.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from supervisor.core.actions import Action
from supervisor.core.decide import decide
from supervisor.core.decision import Decision
from supervisor.core.memory import Memory
from supervisor.core.observation import Observation
from supervisor.core.spec import Spec

LONGEST_WAIT_MS = 1_000  # a lost wake-up costs latency, never correctness
SAVE_EVERY_MS = 1_000  # what costs nothing to see again (progress, time) is persisted this often


log = logging.getLogger(__name__)


class Observer(Protocol):
    def observe(self, memory: Memory) -> Observation:
        """One snapshot of everything that the core looks at."""


class Store(Protocol):
    def save(self, memory: Memory) -> None:
        """Make `memory` survive a crash. Raises OSError when it cannot: nothing is acted on then."""


class Executor(Protocol):
    def act(self, action: Action) -> None:
        """Ask for `action`; safe to repeat. Transport failures are logged there: the next pass asks again."""


class Recorder(Protocol):
    def decided(self, decided: Decided) -> None:
        """Keep what was decided for history. Never in the way of the next pass."""


class Clock(Protocol):
    def now_ms(self) -> int:
        """The supervisor's own time: it never goes back, and tells of absences through the observation."""


class Doorbell(Protocol):
    def wait(self, timeout_ms: int) -> None:
        """Return when something worth a pass has happened, or after `timeout_ms`."""


@dataclass(frozen=True, slots=True)
class Decided:
    """One pass, whole: enough to decide it again."""

    spec: Spec
    memory: Memory
    observation: Observation
    now_ms: int
    decision: Decision


@dataclass(slots=True)
class Driver:
    memory: Memory
    observer: Observer
    store: Store
    executor: Executor
    recorder: Recorder
    clock: Clock
    doorbell: Doorbell
    _saved_ms: int = 0

    def run(self, spec: Callable[[], Spec], finished: Callable[[Memory], bool]) -> Memory:
        """Pass after pass until `finished` says so."""
        while True:
            decision = self.turn(spec())
            if finished(self.memory):
                return self.memory
            wait = LONGEST_WAIT_MS if decision.requeue_after_ms is None else decision.requeue_after_ms
            self.doorbell.wait(min(wait, LONGEST_WAIT_MS))

    def turn(self, spec: Spec) -> Decision:
        """One pass."""
        before = self.memory
        observation = self.observer.observe(before)
        now = self.clock.now_ms()
        decision = decide(spec, before, observation, now)
        if decision.actions or decision.notes or decision.incidents or now - self._saved_ms >= SAVE_EVERY_MS:
            try:
                self.store.save(decision.memory)
            except OSError as error:  # a full disk, say: what is not remembered is not done, and decided again later
                log.error("memory cannot be saved; nothing is asked for until it can be: %s", error)
                return Decision(before)
            self._saved_ms = now
        self.memory = decision.memory
        self.recorder.decided(Decided(spec, before, observation, now, decision))
        for action in decision.actions:
            self.executor.act(action)
        return decision
