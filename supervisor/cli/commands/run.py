"""`marin-sup run`: supervise a run on this machine until it is over."""

from __future__ import annotations

from pathlib import Path

import click

from supervisor.cli.run_lookup import runs_root


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--fleet", metavar="RxN", help="Racks x nodes to run on, such as 2x3.  [default: what the layout needs]")
@click.option("--workdir", type=click.Path(path_type=Path), help="Directory of the run.  [default: ./runs/NAME]")
@click.option(
    "--data", type=click.Path(exists=True), multiple=True, help="Text file or folder to train on; may be repeated."
)
@click.option("--chaos", metavar='"VERB TARGET @step N"', multiple=True, help="Break something at a step; repeatable.")
def run(file: Path, fleet: str | None, workdir: Path | None, data: tuple[str, ...], chaos: tuple[str, ...]) -> int:
    """Start the run that FILE describes, or continue it where it stands.

    Everything of the run lies in one directory. Ctrl-C saves a checkpoint and stops; a second one kills. A supervisor
    that dies leaves the run training: the same command takes it up again.
    """
    from supervisor.cli.exit_codes import CommandError, ExitCode
    from supervisor.cli.supervision import load_manifest, supervise_here
    from supervisor.local.fleet import BadFleet, parse_fleet
    from supervisor.local.run_options import RunOptions
    from supervisor.local.rundir import RunDirectory

    manifest = load_manifest(file)
    try:
        wanted = parse_fleet(fleet) if fleet is not None else None
    except BadFleet as error:
        raise CommandError(str(error), ExitCode.USAGE) from None
    directory = RunDirectory(workdir or runs_root() / manifest.metadata.name)
    return supervise_here(RunOptions(manifest, directory, wanted, data, chaos, str(file)), directory).code
