"""Numbers as people read them: short, with their unit, `-` where there is none."""

from __future__ import annotations

import math
from datetime import datetime

NONE = "-"
_LARGE = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_SECONDS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def count(value: float | None) -> str:
    """12345 as `12.3k`."""
    if value is None or not math.isfinite(value):
        return NONE
    for size, unit in _LARGE:
        if value >= size * 0.9995:  # what would round to 1000 of the smaller unit
            return f"{value / size:.3g}{unit}" if value < 999.5 * size else f"{value / size:.0f}{unit}"
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


def share(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return NONE
    return f"{100 * value:.0f}%" if value >= 0.0995 or value == 0 else f"{100 * value:.1f}%"


def loss(value: float | None) -> str:
    return NONE if value is None or not math.isfinite(value) else f"{value:.3f}" if abs(value) < 1e4 else f"{value:.3g}"


def span(seconds: float) -> str:
    """The two largest units, as Kubernetes writes an age: `3d4h`, `2m5s`, `41s`."""
    left = max(0, int(seconds))
    parts: list[str] = []
    for size, unit in _SECONDS:
        number, left = divmod(left, size)
        if number or parts:
            parts.append(f"{number}{unit}" if number else "")
    return "".join(parts[:2]) or "0s"


def age(seconds: float) -> str:
    """As kubectl writes it: the smaller of two units only where it still matters."""
    whole = max(0, int(seconds))
    for below, size, unit in ((120, 1, "s"), (10_800, 60, "m"), (172_800, 3_600, "h")):
        if whole < below:
            return f"{whole // size}{unit}" if whole < size * 2 or whole >= size * 10 else span(whole)
    return span(whole) if whole < 8 * 86_400 else f"{whole // 86_400}d"


def seconds(milliseconds: int | None) -> str:
    """For tables: `8.1`, `124`."""
    if milliseconds is None:
        return NONE
    return f"{milliseconds / 1000:.1f}" if milliseconds < 99_950 else f"{milliseconds / 1000:.0f}"


def clock(milliseconds: int) -> str:
    """Local time of day."""
    return datetime.fromtimestamp(milliseconds / 1000).strftime("%H:%M:%S")


def day_and_clock(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000).strftime("%Y-%m-%d %H:%M:%S")
