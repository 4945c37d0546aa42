"""`marin-sup stop`: save and suspend."""

from __future__ import annotations

import time

import click

from supervisor.cli.asking import LOOK_EVERY, leave_request, tell, wait_for_answer
from supervisor.cli.exit_codes import CommandError, ExitCode
from supervisor.cli.run_lookup import find_run, spoken
from supervisor.cli.run_state import ENDED, read_run
from supervisor.cli.seconds import duration
from supervisor.local.rundir import RunDirectory

RESTING = ("Suspended", "Held", *ENDED)  # no rank runs in any of these


@click.command()
@click.argument("run")
@click.option("--wait/--no-wait", default=True, help="Wait until it is suspended.  [default: wait]")
@click.option("--timeout", type=duration, default="10m", help="How long to wait.  [default: 10m]")
def stop(run: str, wait: bool, timeout: float) -> int | None:
    """Save RUN at the next step, end its ranks and suspend it; `resume` or `run` continue it.

    A run that trains on without a supervisor gets one, here, which carries this out.
    """
    directory = find_run(run)
    if directory.supervisor_pid() is None:
        return _stop_here(directory)
    request = leave_request(directory, "stop", {})
    if not wait:
        click.echo(request)
        return None
    started = time.monotonic()
    code = tell(wait_for_answer(directory, request, timeout))
    if code is ExitCode.OK:
        _wait_suspended(directory, timeout - (time.monotonic() - started))
    return code


def _stop_here(directory: RunDirectory) -> int:
    from supervisor.cli.left_workers import living_workers
    from supervisor.cli.supervision import options_of, supervise_here

    workers = living_workers(directory)
    if not workers:
        raise CommandError(
            f"nothing of {spoken(directory)} runs: no supervisor and no worker is alive", ExitCode.NOT_FOUND
        )
    click.echo(f"{spoken(directory)} trains without a supervisor on {', '.join(workers)}; this one saves and stops it")
    leave_request(directory, "stop", {})
    return supervise_here(options_of(directory), directory).code


def _wait_suspended(directory: RunDirectory, timeout_seconds: float) -> None:
    deadline = time.monotonic() + timeout_seconds
    while time.monotonic() < deadline:
        state = read_run(directory)
        if state.phase in RESTING or state.ended:
            click.echo(f"{spoken(directory)} is {state.phase} at step {state.integer('step')}")
            return
        if state.supervisor is None:
            raise CommandError(
                f"the supervisor of {spoken(directory)} ended before the run was suspended; see marin-sup status "
                f"{spoken(directory)}",
                ExitCode.NOT_FOUND,
            )
        time.sleep(LOOK_EVERY)
    raise CommandError(f"{spoken(directory)} is not suspended within the timeout; it goes on", ExitCode.TIMED_OUT)
