"""`marin-sup resume`: the way out of Held, and of Suspended."""

from __future__ import annotations

import click

from supervisor.cli.asking import leave_request, tell, wait_for_answer
from supervisor.cli.exit_codes import CommandError, ExitCode
from supervisor.cli.run_lookup import find_run, spoken
from supervisor.cli.run_state import read_run
from supervisor.cli.seconds import duration


@click.command()
@click.argument("run")
@click.option("--from-step", type=click.IntRange(min=0), help="Continue from this checkpoint, not from the newest.")
@click.option("--timeout", type=duration, default="60s", help="How long to wait for the answer.  [default: 60s]")
def resume(run: str, from_step: int | None, timeout: float) -> int:
    """Continue RUN: held, suspended, or left by its supervisor.

    Where a supervisor is alive it is asked to; else this command supervises the run from here on, as `run` does.
    """
    directory = find_run(run)
    content = {} if from_step is None else {"fromStep": from_step}
    if directory.supervisor_pid() is not None:
        request = leave_request(directory, "resume", content)
        return tell(wait_for_answer(directory, request, timeout))

    from supervisor.cli.supervision import options_of, supervise_here

    phase = read_run(directory).phase
    if phase == "Succeeded":
        raise CommandError(f"{spoken(directory)} has succeeded already; there is nothing to resume", ExitCode.FAILED)
    options = options_of(directory)
    if from_step is not None or phase in ("Held", "Suspended"):
        leave_request(options.directory, "resume", content)
    return supervise_here(options, directory).code
