"""Durations on the command line: `60`, `60s`, `2m`, `1h30m`."""

from __future__ import annotations

import re

import click

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]{1,9})(ms|h|m|s)")


def duration(text: str) -> float:
    """Seconds; the type of an option. A bare number is seconds, too."""
    if re.fullmatch(r"[0-9]{1,9}", text):
        return float(text)
    if not re.fullmatch(rf"({_PART.pattern})+", text):
        raise click.BadParameter(f"found {text[:40]!r}, allowed is a duration such as 60s or 1h30m")
    return sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(text))
