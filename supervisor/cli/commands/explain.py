"""`marin-sup explain`: the last decision, for a person at 3 a.m."""

from __future__ import annotations

import json

import click

from supervisor.cli import amounts, formats
from supervisor.cli.exit_codes import CommandError, ExitCode
from supervisor.cli.run_lookup import as_typed, find_run, spoken
from supervisor.cli.run_state import RunState, read_run
from supervisor.cli.status_table import phase_word, unwatched
from supervisor.wire.text import printable

HEADINGS = {
    "seen": "What was seen",
    "concluded": "What was concluded",
    "why": "Why",
    "done": "What is being done",
    "next": "What happens next",
}


@click.command()
@click.argument("run")
@formats.output_option("text", "json")
def explain(run: str, output: str) -> None:
    """Tell the last decision about RUN that was more than routine: what was seen, concluded and done.

    -o json prints the whole record, which is all that the decision was made from.
    """
    from supervisor.cli.explanation import explanation
    from supervisor.cli.last_decision import last_decision

    directory = find_run(run)
    logged = last_decision(directory)
    if logged is None:
        raise CommandError(f"nothing has been decided about {spoken(directory)} yet", ExitCode.NOT_FOUND)
    if output == "json":
        click.echo(formats.as_json(json.loads(logged.line)))
        return
    decided, name = logged.decided, logged.decided.spec.name
    memory = decided.decision.memory
    click.echo(
        f"{spoken(directory)}, {amounts.day_and_clock(decided.now_ms)}: {memory.phase.value}, {memory.reason.value}"
    )
    for heading, lines in explanation(decided):
        click.echo(f"\n{HEADINGS[heading]}")
        for line in lines:
            click.echo(f"  {as_typed(line, name, directory)}")
    state = read_run(directory)
    same = (phase_word(state), state.text("reason")) == (memory.phase.value, memory.reason.value)
    click.echo(f"\nNow\n  {f'unchanged: {phase_word(state)}' if same else _now(state)}")


def _now(state: RunState) -> str:
    """Where the run stands by now, which may be further on."""
    message = as_typed(state.text("message"), state.name, state.directory)
    parts = [state.damage or f"{phase_word(state)}, {state.text('reason')}: {message}"]
    if alone := unwatched(state):
        parts.append(alone)
    return printable("; ".join(parts), 2000)
