"""What each exit code of `marin-sup` means. Stable: scripts depend on them."""

from __future__ import annotations

from enum import IntEnum

import click


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    TIMED_OUT = 4
    HELD = 5
    INTERNAL = 70
    INTERRUPTED = 130


MEANINGS: dict[ExitCode, str] = {
    ExitCode.OK: "done",
    ExitCode.FAILED: "the run failed, or refused what was asked of it",
    ExitCode.USAGE: "a mistake in the command line or in the manifest",
    ExitCode.NOT_FOUND: "no such run, or nothing that could answer",
    ExitCode.TIMED_OUT: "waiting took too long",
    ExitCode.HELD: "the run is held: a person must act",
    ExitCode.INTERNAL: "a fault of marin-sup itself",
    ExitCode.INTERRUPTED: "interrupted",
}


class CommandError(click.ClickException):
    """Ends the command with `message` on stderr, one or several lines, and `code`."""

    def __init__(self, message: str, code: ExitCode) -> None:
        super().__init__(message)
        self.code = code
