"""Mistakes in a manifest: one line each, all of them at once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from supervisor.api.words import escaped

Location = tuple[str | int, ...]

_SHOWN = 100  # mistakes; a file with more is not repaired line by line
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong at one place. `at` is empty for the file as a whole; `line` counts from 1, 0 when unknown."""

    at: Location
    text: str
    line: int = 0

    def __str__(self) -> str:
        return f"{path_of(self.at)}: {self.text}" if self.at else self.text


class BadManifest(Exception):
    """A manifest that cannot be used. `str()` is one line per mistake, in the order of the file."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(dict.fromkeys(sorted(mistakes, key=lambda mistake: mistake.line)))
        super().__init__(self.mistakes)

    def lines(self) -> list[str]:
        """One line per mistake; a last one counts those beyond the hundredth."""
        shown = [str(mistake) for mistake in self.mistakes[:_SHOWN]]
        rest = len(self.mistakes) - _SHOWN
        return [*shown, f"... and {rest} more"] if rest > 0 else shown

    def __str__(self) -> str:
        return "\n".join(self.lines())


def path_of(location: Location) -> str:
    """`("spec", "env", 0, "a/b")` as `spec.env[0]["a/b"]`."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif _PLAIN.fullmatch(part):
            path += f".{part}" if path else part
        else:
            path += f'["{escaped(part)}"]'
    return path
