"""`marin-sup logs`: what the ranks wrote."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from supervisor.cli.exit_codes import CommandError, ExitCode
from supervisor.cli.rank_output import Follower, RankOutput, find_outputs, last_lines
from supervisor.cli.run_lookup import as_typed, find_run, spoken
from supervisor.cli.run_state import read_run
from supervisor.local.rundir import RunDirectory
from supervisor.wire.text import printable, printable_lines

if TYPE_CHECKING:
    from supervisor.cli.past import EndedRank
    from supervisor.core.incident import Incident

LOOK_EVERY = 0.3  # seconds
MAX_TAIL = 64 << 10
LINES = 100
LAST_WORDS = 15  # lines per rank: enough for the end of a traceback


@click.command()
@click.argument("run")
@click.option("--rank", type=click.IntRange(min=0), help="Only this rank.  [default: all]")
@click.option("--attempt", type=click.IntRange(min=1), help="Of this attempt.  [default: the newest]")
@click.option("--incident", help="The last words of the ranks that an incident ended, such as i0001 or 1.")
@click.option("--tail", type=click.IntRange(min=0), help="Lines per rank; 0: all.  [default: 100; of an incident 15]")
@click.option("-f", "--follow", is_flag=True, help="Go on as they write, through new attempts, until the run ends.")
def logs(run: str, rank: int | None, attempt: int | None, incident: str | None, tail: int | None, follow: bool) -> None:
    """Print the output of the ranks of RUN. Control characters are escaped."""
    directory = find_run(run)
    if incident is not None:
        if attempt is not None or follow:
            raise click.UsageError("--incident goes with --rank and --tail only")
        _print_incident(directory, incident, rank, LAST_WORDS if tail is None else tail)
        return
    outputs = _chosen(directory, rank, attempt)
    if not outputs and not follow:
        raise CommandError(_nothing(directory, rank, attempt), ExitCode.NOT_FOUND)
    alone = rank is not None
    followers = {}
    for output in outputs:
        lines, followers[output] = last_lines(output, LINES if tail is None else tail)
        _print(output, lines, alone)
    if follow:
        _follow(directory, rank, attempt, followers)


def _chosen(directory: RunDirectory, rank: int | None, attempt: int | None) -> list[RankOutput]:
    found = find_outputs(directory)
    newest = max((output.attempt for output in found), default=0)
    wanted = newest if attempt is None else attempt
    return [o for o in found if o.attempt == wanted and rank in (None, o.rank)]


def _nothing(directory: RunDirectory, rank: int | None, attempt: int | None) -> str:
    found = find_outputs(directory)
    if not found:
        return f"no rank of {spoken(directory)} has written anything yet"
    attempts = sorted({output.attempt for output in found})
    looked_at = attempt if attempt in attempts else attempts[-1]
    ranks = sorted({output.rank for output in found if output.attempt == looked_at})
    what = " and ".join(
        f"{name} {value}" for name, value in (("attempt", attempt), ("rank", rank)) if value is not None
    )
    return f"no output of {what}; there are attempts {_ranges(attempts)}, and of {looked_at} ranks {_ranges(ranks)}"


def _ranges(numbers: list[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def _print(output: RankOutput, lines: list[str], alone: bool) -> None:
    prefix = "" if alone else f"[a{output.attempt} rank {output.rank} {output.node}] "
    for line in lines:
        click.echo(f"{prefix}{line}")


def _follow(
    directory: RunDirectory, rank: int | None, attempt: int | None, followers: dict[RankOutput, Follower]
) -> None:
    while True:
        ended = read_run(directory).ended  # before reading, so that nothing written until then is missed
        for output in _chosen(directory, rank, attempt):
            followers.setdefault(output, Follower(output))
        for output, follower in followers.items():
            _print(output, follower.more(), alone=rank is not None)
        if ended:
            return
        time.sleep(LOOK_EVERY)


def _print_incident(directory: RunDirectory, name: str, rank: int | None, tail: int) -> None:
    from supervisor.cli.incident_words import sentence
    from supervisor.cli.past import read_exits, read_incidents, read_nodes

    known = read_incidents(directory)
    digits = name.removeprefix("i").lstrip("0")
    chosen = next((i for i in known if str(i.number) == digits), None)
    if chosen is None:
        have = f"there are {', '.join(i.name for i in known)}" if known else "there are none"
        raise CommandError(f"no incident {printable(name, 40)} of {spoken(directory)}; {have}", ExitCode.NOT_FOUND)
    click.echo(printable(as_typed(sentence(chosen), read_run(directory).name, directory), 2000))
    ended = {e.rank: e for e in read_exits(directory, chosen.attempt)}
    nodes = {r: e.node for r, e in ended.items()} | read_nodes(directory, chosen.attempt)
    if rank is not None and nodes and rank not in nodes:
        raise CommandError(
            f"attempt {chosen.attempt} has no rank {rank}; there are {_ranges(sorted(nodes))}", ExitCode.NOT_FOUND
        )
    if not nodes:
        click.echo("no rank of it was heard to end: what they said last is gone with their nodes")
    for number in sorted(nodes):
        if rank in (None, number):
            _print_last_words(directory, chosen, number, nodes[number], ended.get(number), tail)


def _print_last_words(
    directory: RunDirectory, incident: Incident, rank: int, node: str, ended: EndedRank | None, tail: int
) -> None:
    shown = printable(node, 64)
    if ended is None:
        path = directory.node(node) / f"a{incident.attempt:04d}" / f"rank-{rank:04d}" / "output.log"
        log = f"its log: {printable(str(path), 1000)}" if path.is_file() else "it left no log"
        click.echo(f"\nrank {rank} on {shown} was lost with its node; {log}")
        return
    click.echo(f"\nrank {rank} on {shown} {ended.how}")
    text = printable_lines(ended.tail.encode("utf-8", "replace"), MAX_TAIL).rstrip("\n")
    if not text:
        click.echo("  (it wrote nothing)")
        return
    for line in text.split("\n")[-tail:]:
        click.echo(f"  {line}".rstrip())
