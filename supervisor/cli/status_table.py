"""Runs in a table, one line each."""

from __future__ import annotations

from supervisor.cli import amounts
from supervisor.cli.run_lookup import as_typed
from supervisor.cli.run_state import RunState, integer
from supervisor.cli.table import table

HEADERS = ("NAME", "PHASE", "STEP", "LOSS", "TOK/S", "MFU", "GOODPUT", "ATTEMPT", "RACKS", "INCIDENTS", "AGE")
RIGHT = ("LOSS", "TOK/S", "MFU", "GOODPUT", "ATTEMPT", "RACKS", "INCIDENTS")
DISPENSABLE = ("AGE", "ATTEMPT", "TOK/S", "GOODPUT", "MFU")
STEADY = (12, 10, 11, 6, 6, 4, 7, 7, 5, 9, 5)  # widths for lines that are printed one at a time
REASON_CHARACTERS = 200
STOPPED = "Stopped"  # no phase of the core, which is not there to say it


def status_table(states: list[RunState], wide: bool, least: tuple[int, ...] = ()) -> list[str]:
    """Its lines, the headers first. `least`: see `table`."""
    headers = (*HEADERS, "REASON") if wide else HEADERS
    return table(headers, [row(state, wide) for state in states], RIGHT, least)


def fitted_table(states: list[RunState], width: int) -> list[str]:
    """Its lines on a terminal of `width` columns: where it does not fit, the least telling columns are left out."""
    headers = list(HEADERS)
    rows = [dict(zip(HEADERS, row(state, wide=False), strict=True)) for state in states]
    for dispensable in (None, *DISPENSABLE):
        headers = [header for header in headers if header != dispensable]
        lines = table(headers, [[cells[header] for header in headers] for cells in rows], RIGHT)
        if max(map(len, lines)) <= width:
            break
    return lines


def row(state: RunState, wide: bool) -> tuple[str, ...]:
    cells = (
        state.directory.root.name,
        phase_word(state),
        step_of_steps(state),
        amounts.loss(state.number("loss")),
        amounts.count(state.number("tokensPerSecond")),
        amounts.share(state.number("mfu")),
        amounts.share(state.number("goodput")),
        _whole(state.integer("attempt")),
        _racks(state),
        _whole(state.integer("incidents")),
        _age(state),
    )
    return (*cells, _reason(state)) if wide else cells


def phase_word(state: RunState) -> str:
    """The phase; one that needs a supervisor which is not there is said to be left alone, or to have stopped."""
    if state.stopped:
        return STOPPED
    return f"{state.phase}(unwatched)" if state.unwatched else state.phase


def step_of_steps(state: RunState) -> str:
    step, total = state.integer("step"), state.integer("totalSteps")
    if step is None:
        return amounts.NONE
    return f"{step}/{total}" if total else str(step)


def unwatched(state: RunState) -> str | None:
    """In a sentence that nobody supervises a run that is not over; None where all is well."""
    if not state.unwatched:
        return None
    if state.stopped:
        return f"no supervisor and no worker is alive; it was {state.phase}"
    age = state.age_seconds("updatedAt")
    seen = f"; what is shown is {amounts.span(age)} old" if age is not None else ""
    return f"no supervisor is alive{seen}"


def _racks(state: RunState) -> str:
    used, wanted = integer(state.section("layout"), "racks"), state.wanted_racks()
    if used is None and wanted is None:
        return amounts.NONE
    return f"{used if used is not None else amounts.NONE}/{wanted if wanted is not None else amounts.NONE}"


def _age(state: RunState) -> str:
    age = state.age_seconds("startedAt")
    return amounts.age(age) if age is not None else amounts.NONE


def _reason(state: RunState) -> str:
    """Last in its line, so that its length moves nothing."""
    message = as_typed(state.text("message"), state.name, state.directory)
    said = state.damage or f"{state.text('reason')}: {message}"
    alone = unwatched(state)
    return f"{said}; {alone}"[:REASON_CHARACTERS] if alone else said[:REASON_CHARACTERS]


def _whole(value: int | None) -> str:
    return amounts.NONE if value is None else str(value)
