"""`marin-sup demo`: a small model, a lost node, a lost rack, and the end reached all the same."""

from __future__ import annotations

from pathlib import Path

import click

from supervisor.cli.program import PROGRAM
from supervisor.cli.run_lookup import runs_root

SAMPLE = Path("k8s") / "samples" / "demo.yaml"
FLEET = "2x3"
CHAOS = ("kill-node r0n1 @step 35", "kill-rack r1 @step 75")

NEXT = f'{PROGRAM} run {SAMPLE} --fleet {FLEET} --workdir runs/mine --chaos "fail-rank 1 @step 20"'


@click.command()
def demo() -> int:
    """Train a small mixture-of-experts model on two racks of processes, and break them.

    A node is killed (the spare of its rack takes over), then a rack (the run goes on with the other one). Takes about
    two minutes on two cores. The run lies below ./runs, in a new directory each time. Exits with 0 only if the run
    succeeded and every incident was recovered from.
    """
    from supervisor.cli.exit_codes import ExitCode
    from supervisor.cli.past import read_incidents
    from supervisor.cli.supervision import load_manifest, supervise_here
    from supervisor.core.incident import Outcome
    from supervisor.core.memory import Phase
    from supervisor.local.fleet import parse_fleet
    from supervisor.local.run_options import RunOptions
    from supervisor.local.rundir import RunDirectory

    manifest = load_manifest(_sample())
    directory = RunDirectory(_fresh(runs_root() / manifest.metadata.name))
    named = manifest.metadata.model_copy(update={"name": directory.root.name})
    manifest = manifest.model_copy(update={"metadata": named})
    click.echo(f"a run in {directory.root}, which will lose a node and then a rack: {'; '.join(CHAOS)}")
    finished = supervise_here(RunOptions(manifest, directory, parse_fleet(FLEET), chaos=CHAOS), directory)
    if finished.memory.phase is not Phase.SUCCEEDED:
        return finished.code or ExitCode.INTERRUPTED  # suspended by Ctrl-C is well, but no demo
    outcomes = [incident.outcome for incident in read_incidents(directory)]
    recovered = outcomes.count(Outcome.RECOVERED)
    if recovered < len(CHAOS) or recovered != len(outcomes):
        click.echo(
            f"marin-sup: {recovered} of {len(outcomes)} incidents were recovered from, expected at least {len(CHAOS)}",
            err=True,
        )
        return ExitCode.FAILED
    click.echo(
        f"\nthe run succeeded and recovered from all {recovered} incidents by itself; now break it yourself:\n  {NEXT}"
    )
    return ExitCode.OK


def _sample() -> Path:
    """In the clone that this package was installed from, or below the current directory."""
    from supervisor.cli.exit_codes import CommandError, ExitCode

    clone = Path(__file__).resolve().parents[3]
    for folder in (clone, Path()):
        if (folder / SAMPLE).is_file():
            return folder / SAMPLE
    raise CommandError(f"{SAMPLE} is not here; call this from a clone of the repository", ExitCode.NOT_FOUND)


def _fresh(wanted: Path) -> Path:
    """`wanted`, or with the first number behind it that is free."""
    number, path = 1, wanted
    while path.exists():
        number += 1
        path = wanted.with_name(f"{wanted.name}-{number}")
    return path
