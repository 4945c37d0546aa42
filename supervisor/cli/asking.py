"""Asking something of a run: a request in its directory, and its outcome in the run's status."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import Any

import click

from supervisor.cli.exit_codes import CommandError, ExitCode
from supervisor.cli.run_lookup import spoken
from supervisor.cli.run_state import read_run, text
from supervisor.local.rundir import RunDirectory, write_json

LOOK_EVERY = 0.2  # seconds
UNFINISHED = ("", "Pending")


@dataclass(frozen=True, slots=True)
class Answer:
    outcome: str
    message: str


def leave_request(directory: RunDirectory, kind: str, content: dict[str, Any]) -> str:
    """Write the request and return its id. `kind`: `checkpointNow`, `stop` or `resume`, as in spec.requests."""
    name = f"{kind.lower()}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(3)}"
    directory.requests.mkdir(parents=True, exist_ok=True)
    write_json(directory.requests / f"{name}.json", {"id": name, kind: content})
    return name


def wait_for_answer(directory: RunDirectory, request: str, timeout_seconds: float, settled: bool = True) -> Answer:
    """What became of it. `settled`: wait also until what was asked is done, not only begun. Raises `CommandError`."""
    deadline = time.monotonic() + timeout_seconds
    answer = Answer("", "")
    while time.monotonic() < deadline:
        state = read_run(directory)
        mine = next((item for item in state.items("requests") if text(item, "id") == request), {})
        answer = Answer(text(mine, "outcome"), text(mine, "message"))
        if answer.outcome not in UNFINISHED or (answer.outcome and not settled):
            return answer
        if state.supervisor is None:
            raise CommandError(
                f"the supervisor of {spoken(directory)} has ended; the request {request} is carried out when the run "
                f"is taken up again: marin-sup resume {spoken(directory)}",
                ExitCode.NOT_FOUND,
            )
        time.sleep(LOOK_EVERY)
    so_far = f"; so far: {answer.message}" if answer.message else ""
    raise CommandError(
        f"the request {request} is not done within {timeout_seconds:g} s{so_far}; it stays asked for, "
        f"see marin-sup status {spoken(directory)}",
        ExitCode.TIMED_OUT,
    )


def tell(answer: Answer) -> ExitCode:
    """Print the outcome; a refusal is no success."""
    if answer.outcome == "Refused":
        click.echo(f"marin-sup: refused: {answer.message}", err=True)
        return ExitCode.FAILED
    click.echo(answer.message)
    return ExitCode.OK


def require_supervisor(directory: RunDirectory) -> None:
    """Raises `CommandError` where nobody lives to carry it out."""
    if directory.supervisor_pid() is not None:
        return
    run = spoken(directory)
    if read_run(directory).phase == "Succeeded":
        raise CommandError(f"{run} has succeeded already; nothing of it runs", ExitCode.FAILED)
    hint = f"take the run up first: marin-sup resume {run}"
    raise CommandError(f"no supervisor of {run} is alive; {hint}", ExitCode.NOT_FOUND)
