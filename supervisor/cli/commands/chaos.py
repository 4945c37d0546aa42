"""`marin-sup chaos`: break something on purpose, to see what the supervisor makes of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from supervisor.cli.asking import LOOK_EVERY, require_supervisor
from supervisor.cli.exit_codes import CommandError, ExitCode
from supervisor.cli.run_lookup import find_run, spoken
from supervisor.cli.run_state import integer, read_run

if TYPE_CHECKING:
    from supervisor.local.chaos import ChaosOrder
    from supervisor.local.rundir import RunDirectory

CARRIED_OUT_WITHIN = 15.0  # seconds


@click.command()
@click.argument("run")
@click.argument("order", nargs=-1, required=True, metavar="VERB TARGET [@step N]")
def chaos(run: str, order: tuple[str, ...]) -> int | None:
    """Break something of RUN: now, or once it has completed step N.

    \b
    kill-rank RANK    SIGKILL to one rank
    hang-rank RANK    SIGSTOP to one rank: it hangs, its worker lives
    kill-node NODE    the node loses power (such as r0n1)
    kill-rack RACK    the whole rack loses power (such as r1)
    fail-rank RANK    the trainer of one rank raises an exception
    revive-node NODE  a dead node comes back
    revive-rack RACK  a dead rack comes back
    """
    from supervisor.local.chaos import BadChaos, done_path, parse_chaos, send

    try:
        parsed = parse_chaos(" ".join(order))
    except BadChaos as error:
        raise CommandError(str(error), ExitCode.USAGE) from None
    directory = find_run(run)
    _check_target(directory, parsed)
    if nothing := _nobody_to_revive(directory, parsed):
        click.echo(nothing)
        return None
    takes_up = directory.supervisor_pid() is None and read_run(directory).phase != "Succeeded"
    if parsed.verb.startswith("revive-") and takes_up:
        send(directory, parsed)
        click.echo(f"ordered: {parsed}, for when the run is taken up: marin-sup resume {spoken(directory)}")
        return None
    require_supervisor(directory)
    path = send(directory, parsed)
    if parsed.at_step is not None:
        click.echo(f"ordered: {parsed}")
        return None
    deadline = time.monotonic() + CARRIED_OUT_WITHIN
    while time.monotonic() < deadline:
        if done_path(path).exists():
            click.echo(f"done: {parsed}")
            return None
        time.sleep(LOOK_EVERY / 2)
    raise CommandError(
        f"{parsed} is not carried out within {CARRIED_OUT_WITHIN:g} s; it stays ordered", ExitCode.TIMED_OUT
    )


def _check_target(directory: RunDirectory, order: ChaosOrder) -> None:
    """Raises `CommandError` for what the run does not have, as far as that is known."""
    from supervisor.local.chaos import BadChaos, check_target
    from supervisor.local.fleet import Fleet, load_fleet

    layout = read_run(directory).section("layout")
    racks, nodes, ranks = (integer(layout, key) or 0 for key in ("racks", "nodesPerRack", "ranksPerNode"))
    try:
        check_target(order, load_fleet(directory.fleet) or Fleet(0, 0), racks * nodes * ranks)
    except BadChaos as error:
        raise CommandError(str(error), ExitCode.USAGE) from None


def _nobody_to_revive(directory: RunDirectory, order: ChaosOrder) -> str:
    """Why there is nothing to do for an order to revive, in a sentence; empty where there is."""
    from supervisor.local.fleet import load_fleet

    fleet = load_fleet(directory.fleet)
    if fleet is None or not order.verb.startswith("revive-") or order.at_step is not None:
        return ""
    if order.verb == "revive-node":
        return "" if order.target in fleet.dead else f"{order.target} is not dead; nothing to do"
    return "" if fleet.dead & set(fleet.in_rack(order.target)) else f"no node of {order.target} is dead; nothing to do"
