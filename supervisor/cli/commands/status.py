"""`marin-sup status`: where runs stand."""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from collections.abc import Callable
from typing import Any

import click

from supervisor.cli import formats
from supervisor.cli.exit_codes import CommandError, ExitCode
from supervisor.cli.run_lookup import all_runs, find_run, runs_root, spoken
from supervisor.cli.run_state import RunState, read_run
from supervisor.cli.status_page import status_page
from supervisor.cli.status_table import HEADERS, STEADY, fitted_table, row, status_table
from supervisor.cli.table import paint_phases

CLEAR = "\x1b[H\x1b[2J\x1b[3J"  # cursor home, screen and scroll-back cleared
TIMES = ("AGE", "GOODPUT")  # columns that change while nothing happens
DURATION = re.compile(r"[0-9.]+ (ms|s)\b|[0-9dhms]+ old")  # in sentences
Look = Callable[[], list[RunState]]


@click.command()
@click.argument("run", required=False)
@formats.output_option("table", "wide", "json", "yaml", "name")
@click.option("-w", "--watch", is_flag=True, help="Go on showing it: redrawn on a terminal, else one line per change.")
@click.option("--interval", type=click.FloatRange(0.1, 3600), default=1.0, help="Seconds between looks with --watch.")
def status(run: str | None, output: str, watch: bool, interval: float) -> None:
    """Show where RUN stands, or all runs in a table.

    With --watch and RUN it ends once the run has ended.
    """
    look = _look(run)
    if not watch:
        states = look()
        if not states:
            click.echo(f"no runs in {runs_root()}; start one: marin-sup run FILE", err=True)
        _print(states, output, single=run is not None)
        return
    if sys.stdout.isatty() and output in ("table", "wide"):
        _redraw(look, output, run is not None, interval)
    else:
        _follow(look, output, run is not None, interval)


def _look(run: str | None) -> Look:
    if run is None:
        return lambda: [read_run(directory) for directory in all_runs()]
    directory = find_run(run)
    return lambda: [read_run(directory)]


def _print(states: list[RunState], output: str, single: bool) -> None:
    match output:
        case "name":
            for state in states:
                click.echo(spoken(state.directory))
        case "json" | "yaml":
            objects = [_whole(state) for state in states if single or state.run]
            data = objects[0] if single else formats.as_list(objects)
            click.echo(formats.as_json(data) if output == "json" else formats.as_yaml(data))
        case "table" if single:
            click.echo("\n".join(status_page(states[0], _width())))
        case _ if states:
            lines = _table(states, output)
            click.echo("\n".join(map(paint_phases, lines)))


def _table(states: list[RunState], output: str) -> list[str]:
    width = _width()
    if output == "wide" or width is None:
        return status_table(states, output == "wide")
    return fitted_table(states, width)


def _width() -> int | None:
    """Columns of the terminal; None where stdout is none, and nothing is folded or left out."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _whole(state: RunState) -> dict[str, Any]:
    """The TrainingRun as its supervisor wrote it, with what we see of that supervisor now."""
    if not state.run:
        raise CommandError(f"{state.directory.root}: {state.damage}", ExitCode.NOT_FOUND)
    alive = {"pid": state.supervisor} if state.supervisor else {}
    return {**state.run, "status": {**state.status, "supervisor": {**alive, "alive": state.supervisor is not None}}}


def _redraw(look: Look, output: str, single: bool, interval: float) -> None:
    while True:
        states = look()
        click.echo(CLEAR, nl=False)
        _print(states, output, single)
        if single and states[0].ended:
            return
        time.sleep(interval)


def _follow(look: Look, output: str, single: bool, interval: float) -> None:
    """One line per change: of a table its rows (the age alone is no change), else one JSON object or name."""
    told: dict[str, str] = {}
    if output in ("table", "wide"):
        click.echo(status_table([], wide=True, least=STEADY)[0])
    while True:
        states = look()
        for state in states:
            name = state.directory.root.name
            line, mark = _line(state, output)
            if told.get(name) != mark:
                told[name] = mark
                click.echo(line)
        if single and states[0].ended:
            return
        time.sleep(interval)


def _line(state: RunState, output: str) -> tuple[str, str]:
    """What to print, and what of it counts as news."""
    if output in ("json", "yaml"):
        whole = _whole(state)
        return json.dumps(whole, ensure_ascii=True), DURATION.sub("", json.dumps(_without_time(whole)))
    if output == "name":
        return spoken(state.directory), state.directory.root.name
    cells = row(state, wide=True)
    news = [cell for header, cell in zip((*HEADERS, "REASON"), cells, strict=True) if header not in TIMES]
    return status_table([state], wide=True, least=STEADY)[1], DURATION.sub("", "\0".join(news))


def _without_time(whole: dict[str, Any]) -> dict[str, Any]:
    """The object without what changes while nothing happens."""
    left_out = ("ledger", "goodput", "updatedAt", "conditions")
    status = {key: value for key, value in whole["status"].items() if key not in left_out}
    conditions = whole["status"].get("conditions") or ()
    marks = [[c.get("type"), c.get("status"), c.get("reason")] for c in conditions if isinstance(c, dict)]
    return {**whole, "status": {**status, "conditions": marks}}
