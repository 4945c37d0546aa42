"""Where every millisecond of the run went. The categories add up to the elapsed time by construction.

Time is attributed to the category that was in force since the last pass; what turns out later to have been
something else (a fault noticed late, a time in which nobody watched) is moved, never added.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import Enum


class Category(Enum):
    TRAIN = "train"
    REPLAY = "replay"  # steps done again
    SAVE = "save"  # the part that blocks
    DETECT = "detect"  # from the last sign of progress to the verdict
    STOP = "stop"
    PLACE = "place"
    START = "start"  # processes, imports, distributed initialisation
    COMPILE = "compile"
    RESTORE = "restore"
    WAIT = "wait"  # for capacity
    SUSPENDED = "suspended"
    HELD = "held"
    UNATTRIBUTED = "unattributed"


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds by category."""

    train: int = 0
    replay: int = 0
    save: int = 0
    detect: int = 0
    stop: int = 0
    place: int = 0
    start: int = 0
    compile: int = 0
    restore: int = 0
    wait: int = 0
    suspended: int = 0
    held: int = 0
    unattributed: int = 0

    def of(self, category: Category) -> int:
        value: int = getattr(self, category.value)
        return value

    def plus(self, category: Category, ms: int) -> Times:
        return replace(self, **{category.value: self.of(category) + ms})

    def moved(self, source: Category, target: Category, ms: int) -> Times:
        """At most what `source` holds, so that no category ever falls below zero."""
        ms = max(0, min(ms, self.of(source)))
        return self.plus(source, -ms).plus(target, ms)

    def since(self, before: Times) -> Times:
        """What was added since. Time that was moved out of a category (train, once a fault is found) counts as none."""
        parts = {f.name: max(0, getattr(self, f.name) - getattr(before, f.name)) for f in fields(self)}
        return Times(**parts)

    def total(self) -> int:
        return sum(getattr(self, field.name) for field in fields(self))


@dataclass(frozen=True, slots=True)
class Ledger:
    """`at_ms`: accounted for up to here. `category`: in force since then. `attempt`: the current attempt's share."""

    started_ms: int
    at_ms: int
    category: Category = Category.PLACE
    run: Times = Times()
    attempt: Times = Times()

    def goodput(self) -> float | None:
        """Train over elapsed, None before anything elapsed."""
        total = self.run.total()
        return self.run.train / total if total else None


def opened(now_ms: int) -> Ledger:
    return Ledger(started_ms=now_ms, at_ms=now_ms)


def elapsed(ledger: Ledger, now_ms: int) -> int:
    """Since the last pass; a clock that went back counts as no time at all."""
    return max(0, now_ms - ledger.at_ms)


def account(ledger: Ledger, category: Category, ms: int) -> Ledger:
    return replace(ledger, run=ledger.run.plus(category, ms), attempt=ledger.attempt.plus(category, ms))


def moved(ledger: Ledger, source: Category, target: Category, ms: int) -> Ledger:
    ms = min(ms, ledger.attempt.of(source), ledger.run.of(source))
    return replace(ledger, run=ledger.run.moved(source, target, ms), attempt=ledger.attempt.moved(source, target, ms))
