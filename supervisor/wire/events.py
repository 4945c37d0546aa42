"""One line of a trainer's event stream, checked: untrusted bytes become a small, known object or a reason why not.

Only members that the contract names are kept. A loss or metric that is not finite becomes null: it is news, not
garbage.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from supervisor.wire.text import printable

MAX_LINE_BYTES = 16 * 1024
MAX_TEXT = 1000
MAX_METRICS = 64
MAX_NAME = 128
MAX_INTEGER = 1 << 62
MAX_STEP = 10**12  # what a request may name, too

PHASES = ("import", "init", "restore", "compile", "train", "save", "eval", "exit")
MOVING = ("restore", "save")  # the phases in which bytes move
ALARMS = ("checkpoint-damaged", "checkpoint-foreign", "non-finite-loss", "peer-failed", "data", "storage", "other")

Event = dict[str, Any]
Check = Callable[[Any], Any]


class _Unfit(ValueError):
    """The value is not what the contract allows; the text says what is."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A line that is no event. `reason` is printable and bounded."""

    reason: str


def parse_event(line: bytes) -> Event | Rejected:
    """The event that `line` (without its newline) holds, or why it is none. Never raises."""
    if len(line) > MAX_LINE_BYTES:
        return Rejected(f"longer than {MAX_LINE_BYTES} bytes")
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Rejected(printable(f"not JSON: {error}", 200))
    if not isinstance(data, dict):
        return Rejected("not an object")
    name = data.get("event")
    members = _EVENTS.get(name) if isinstance(name, str) else None
    if members is None:
        return Rejected(printable(f"unknown event {name!r}", 200))
    event: Event = {"event": name}
    time = data.get("time")
    if isinstance(time, int | float) and not isinstance(time, bool) and math.isfinite(time):
        event["time"] = time
    for member, (required, check) in members.items():
        if member not in data:
            if required:
                return Rejected(f"{name}: {member} is missing")
            continue
        try:
            event[member] = check(data[member])
        except _Unfit as error:
            return Rejected(f"{name}.{member}: {error}")
    return event


def _integer(minimum: int, maximum: int = MAX_INTEGER) -> Check:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            raise _Unfit(f"an integer from {minimum} to {maximum} is allowed")
        return value

    return check


def _number(above: float | None = None, minimum: float = -math.inf) -> Check:
    def check(value: Any) -> float | int:
        if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value) or value < minimum:
            raise _Unfit("a finite number is allowed")
        if above is not None and value <= above:
            raise _Unfit(f"a number above {above} is allowed")
        return value

    return check


def _measured(value: Any) -> float | int | None:
    """A loss or metric; null when it is not finite."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Unfit("a number or null is allowed")
    return value if _finite(value) else None


def _finite(value: float | int) -> bool:
    return abs(value) <= MAX_INTEGER if isinstance(value, int) else math.isfinite(value)


def _or_null(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Unfit("a string is allowed")
    return printable(value, MAX_TEXT)


def _one_of(*allowed: str) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise _Unfit(f"one of {', '.join(allowed)} is allowed")
        return value

    return check


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Unfit("true or false is allowed")
    return value


def _contract(value: Any) -> int:
    if isinstance(value, bool) or value != 1:
        raise _Unfit("this worker knows contract 1")
    return 1


def _metrics(value: Any) -> dict[str, float | int | None]:
    if not isinstance(value, dict) or len(value) > MAX_METRICS:
        raise _Unfit(f"an object of at most {MAX_METRICS} members is allowed")
    return {_metric_name(name): _measured(item) for name, item in value.items()}


@functools.lru_cache(maxsize=1024)  # the same few at every step
def _metric_name(name: str) -> str:
    return printable(name, MAX_NAME)


def _layout(value: Any) -> dict[str, int]:
    members = ("racks", "nodesPerRack", "ranksPerNode")
    if not isinstance(value, dict) or set(value) != set(members):
        raise _Unfit(f"an object of {', '.join(members)} is allowed")
    return {member: _integer(1)(value[member]) for member in members}


_EVENTS: dict[str, dict[str, tuple[bool, Check]]] = {
    "hello": {
        "contract": (True, _contract),
        "tokensPerStep": (True, _integer(1)),
        "flopsPerStep": (True, _number(minimum=0)),
        "peakFlopsPerDevice": (True, _or_null(_number(above=0))),
        "peakIsMeasured": (False, _boolean),
        "devices": (True, _integer(1)),
        "parameters": (True, _integer(0)),
        "totalSteps": (False, _or_null(_integer(0, MAX_STEP))),
    },
    "phase": {"phase": (True, _one_of(*PHASES)), "reason": (False, _text)},
    "step": {
        "step": (True, _integer(1, MAX_STEP)),
        "state": (True, _one_of("entered", "completed")),
        "tokens": (False, _integer(0)),
        "loss": (False, _measured),
        "metrics": (False, _metrics),
        "ownSeconds": (False, _number(minimum=0)),
    },
    "progress": {"phase": (True, _one_of(*MOVING)), "bytes": (True, _integer(0))},
    "eval": {"step": (True, _integer(0, MAX_STEP)), "loss": (True, _measured)},
    "checkpoint": {
        "state": (True, _one_of("started", "committed", "failed")),
        "attempt": (True, _integer(1)),
        "step": (True, _integer(0, MAX_STEP)),
        "blockedSeconds": (False, _number(minimum=0)),
        "bytes": (False, _integer(0)),
        "message": (False, _text),
    },
    "alarm": {
        "kind": (True, _one_of(*ALARMS)),
        "attempt": (False, _integer(1)),
        "step": (False, _integer(0, MAX_STEP)),
        "message": (True, _text),
    },
    "layout": {
        "layout": (True, _layout),
        "fits": (True, _boolean),
        "microbatches": (False, _or_null(_integer(1))),
        "memoryBytes": (False, _or_null(_integer(0))),
        "reason": (True, _text),
    },
}
