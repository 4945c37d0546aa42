"""`marin-sup checkpoint`: save now."""

from __future__ import annotations

import click

from supervisor.cli.asking import leave_request, require_supervisor, tell, wait_for_answer
from supervisor.cli.run_lookup import find_run
from supervisor.cli.seconds import duration


@click.command()
@click.argument("run")
@click.option("--wait/--no-wait", default=True, help="Wait until it is committed.  [default: wait]")
@click.option("--timeout", type=duration, default="60s", help="How long to wait.  [default: 60s]")
def checkpoint(run: str, wait: bool, timeout: float) -> int | None:
    """Ask RUN to save a checkpoint at the next step, and go on."""
    directory = find_run(run)
    require_supervisor(directory)
    request = leave_request(directory, "checkpointNow", {})
    if not wait:
        click.echo(request)
        return None
    return tell(wait_for_answer(directory, request, timeout))
