"""Tables as kubectl prints them: upper-case headers, columns aligned, no borders."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from supervisor.wire.text import printable

GAP = "  "
MAX_CELL = 400

PHASE_COLOURS = {
    "Running": "green",
    "Succeeded": "green",
    "Starting": "cyan",
    "Recovering": "yellow",
    "Suspended": "yellow",
    "Stopped": "yellow",
    "Held": "red",
    "Failed": "red",
}


def table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = (), least: Sequence[int] = ()
) -> list[str]:
    """The lines of a table. Columns named in `right` are aligned there (numbers). Cells are made fit for a terminal.

    `least`: widths of the first columns, for lines that are printed one at a time.
    """
    lines = [list(headers), *([printable(cell, MAX_CELL) for cell in row] for row in rows)]
    least = [*least, *[0] * (len(headers) - len(least))]
    widths = [max(least[i], *(len(line[i]) for line in lines)) for i in range(len(headers))]
    aligned = [str.rjust if header in right else str.ljust for header in headers]
    return [
        GAP.join(align(cell, width) for align, cell, width in zip(aligned, line, widths, strict=True)).rstrip()
        for line in lines
    ]


def colours_wanted() -> bool:
    """Only on a terminal, and not against the user's word (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, colour: str | None, bold: bool = False) -> str:
    return click.style(text, fg=colour, bold=bold or None) if colour and colours_wanted() else text


def paint_phases(line: str) -> str:
    """A line of a table with the first phase in it coloured; alignment stays, since it was done before."""
    if not colours_wanted():
        return line
    phase = next((phase for phase in PHASE_COLOURS if f" {phase} " in f" {line} "), None)
    return line if phase is None else line.replace(phase, painted(phase, PHASE_COLOURS[phase]), 1)
