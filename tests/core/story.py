"""A story: a world, what happens in it and when, and how it must end. A failed one prints what was decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from supervisor.core.incident import Incident
from supervisor.core.memory import Phase, RequestState, Stage
from supervisor.core.reasons import Reason
from tests.core.world import World

Condition = Callable[[World], bool]
LONGEST = 400  # ticks; every story ends far before


@dataclass(frozen=True)
class Event:
    when: Condition
    verb: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]

    def happen(self, world: World) -> None:
        getattr(world, self.verb)(*self.arguments, **self.named)


class Trigger:
    """`at(12).kill_node("r0n1")`: the next method called is an event of the world, once the condition holds."""

    def __init__(self, condition: Condition) -> None:
        self._condition = condition

    def __getattr__(self, verb: str) -> Callable[..., Event]:
        if not callable(getattr(World, verb, None)):
            raise AttributeError(f"the world knows no event {verb}")
        return lambda *arguments, **named: Event(self._condition, verb, arguments, named)


def at(step: int, attempt: int = 0) -> Trigger:
    """Once that step is completed; in that attempt, where one is named."""
    return Trigger(lambda world: world.step >= step and attempt in (0, _number(world)))


def once_said(reason: Reason) -> Trigger:
    return Trigger(lambda world: world.said(reason))


def once(condition: Condition) -> Trigger:
    return Trigger(condition)


def saving() -> Trigger:
    return Trigger(lambda world: world.stage is Stage.SAVING)


def from_the_start() -> Trigger:
    return Trigger(lambda world: True)


def starting(attempt: int) -> Trigger:
    """While that attempt, ordered and adopted, has completed no step yet."""
    return Trigger(lambda world: world.stage is Stage.LAUNCHING and _number(world) == attempt and _adopted(world))


def stopping() -> Trigger:
    return Trigger(lambda world: world.stage is Stage.STOPPING)


def between_attempts(attempt: int) -> Trigger:
    return Trigger(lambda world: world.memory.attempt is None and world.memory.newest_attempt == attempt)


def held() -> Trigger:
    return Trigger(lambda world: world.phase is Phase.HELD)


def suspended() -> Trigger:
    return Trigger(lambda world: world.phase is Phase.SUSPENDED)


def stepping(attempt: int) -> Trigger:
    return Trigger(lambda world: world.stage is Stage.STEPPING and _number(world) == attempt)


def _number(world: World) -> int:
    return world.memory.attempt.number if world.memory.attempt else 0


def _adopted(world: World) -> bool:
    return any(gang.intent.attempt == _number(world) for worker in world.workers.values() for gang in worker.gangs)


@dataclass(frozen=True)
class Expected:
    """One incident, in order. What is None is not looked at."""

    cause: Reason
    rung: Reason | None = None
    resumed_at: int | None = None
    lost: int | None = None
    blames: str | None = None

    def differs(self, incident: Incident) -> list[str]:
        found: dict[str, tuple[object, object]] = {
            "cause": (self.cause, incident.verdict and incident.verdict.reason),
            "rung": (self.rung, incident.rung),
            "resumed at": (self.resumed_at, incident.resumed_from.step if incident.resumed_from else 0),
            "steps lost": (self.lost, incident.steps_lost),
            "blames": (self.blames, incident.verdict and incident.verdict.blame),
        }
        return [f"{name}: wanted {want}, found {got}" for name, (want, got) in found.items() if want not in (None, got)]


@dataclass(frozen=True)
class Story:
    sentence: str
    when: tuple[Event, ...]
    then: tuple[Expected, ...] = ()
    ends: Phase = Phase.SUCCEEDED
    because: Reason | None = None
    given: dict[str, Any] = field(default_factory=dict)  # fields of the world; what can change, as a function
    attempts: int | None = None
    requests: tuple[RequestState, ...] = ()
    holds: tuple[tuple[str, Callable[[World], bool]], ...] = ()  # what else must be true at the end, in words

    def __str__(self) -> str:
        return self.sentence

    def play(self) -> World:
        world = World(**{name: value() if callable(value) else value for name, value in self.given.items()})
        pending = list(self.when)
        quiet = 0
        for _ in range(LONGEST):
            world.tick()
            while pending and pending[0].when(world):
                pending.pop(0).happen(world)
                quiet = 0
            quiet = quiet + 1 if world.phase is self.ends else 0
            if not pending and quiet > 25:
                break
        assert not pending, f"never came to {pending[0].verb}{pending[0].arguments}\n{world.story()}"
        return world

    def check(self, world: World) -> None:
        wrong = [f"phase: wanted {self.ends.value}, found {world.phase.value}"] if world.phase is not self.ends else []
        incidents = [world.incidents[number] for number in sorted(world.incidents)]
        if len(incidents) != len(self.then):
            wrong.append(f"incidents: wanted {len(self.then)}, found {len(incidents)}")
        for expected, incident in zip(self.then, incidents, strict=False):
            wrong += [f"incident {incident.number}: {difference}" for difference in expected.differs(incident)]
        if self.because not in (None, world.memory.reason):
            wrong.append(f"reason: wanted {self.because}, found {world.memory.reason}")
        if self.attempts not in (None, world.memory.newest_attempt):
            wrong.append(f"attempts: wanted {self.attempts}, found {world.memory.newest_attempt}")
        outcomes = tuple(outcome.state for outcome in world.memory.requests)
        if outcomes != self.requests:
            wrong.append(f"requests: wanted {self.requests}, found {world.memory.requests}")
        wrong += [f"not true: {words}" for words, holds in self.holds if not holds(world)]
        assert not wrong, "\n".join([*wrong, world.story()])
