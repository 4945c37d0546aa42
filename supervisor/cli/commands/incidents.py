"""`marin-sup incidents`: every loss of progress of a run, and what it cost."""

from __future__ import annotations

from typing import Any

import click

from supervisor.cli import formats
from supervisor.cli.run_lookup import as_typed, find_run, spoken
from supervisor.cli.run_state import read_run


@click.command()
@click.argument("run")
@formats.output_option("table", "wide", "json", "yaml")
def incidents(run: str, output: str) -> None:
    """List the incidents of RUN: what was the cause, what was done, what it cost.

    SECONDS-LOST is the time from the last step before it to the first new one, less what the run was suspended or
    held meanwhile; -o wide splits all of it by category.
    """
    from supervisor.cli.incident_table import incident_table
    from supervisor.cli.past import read_incidents

    directory = find_run(run)
    known = read_incidents(directory)
    if output in ("json", "yaml"):
        data = formats.as_list([_data(incident) for incident in known])
        click.echo(formats.as_json(data) if output == "json" else formats.as_yaml(data))
        return
    if not known:
        click.echo(f"no incidents in {spoken(directory)} so far", err=True)
        return
    name = read_run(directory).name
    lines = incident_table(known, output == "wide", lambda text: as_typed(text, name, directory))
    click.echo("\n".join(lines))


def _data(incident: Any) -> dict[str, Any]:
    """An `Incident` as an object of the kind that the resource will have."""
    from supervisor.cli import incident_words

    verdict, resumed = incident.verdict, incident.resumed_from
    return {
        "kind": "Incident",
        "name": incident.name,
        "attempt": incident.attempt,
        "openedAtMs": incident.opened_ms,
        "closedAtMs": incident.closed_ms,
        "outcome": incident.outcome.value,
        "verdict": verdict
        and {
            "cause": verdict.cause.value,
            "blame": verdict.blame,
            "reason": verdict.reason.value,
            "because": verdict.because,
            "confidence": verdict.confidence,
            "evidence": list(verdict.evidence),
        },
        "action": {"reason": incident.rung.value if incident.rung else None, "message": incident.action},
        "resumedFrom": resumed and {"attempt": resumed.attempt, "step": resumed.step},
        "stepsLost": incident.steps_lost,
        "millisecondsLost": incident_words.lost_ms(incident),
        "millisecondsByCategory": {c.value: ms for c, ms in incident_words.by_category(incident.cost)},
    }
