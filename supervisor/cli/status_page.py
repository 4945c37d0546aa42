"""Everything that is known of one run, on one page."""

from __future__ import annotations

import textwrap

from supervisor.cli import amounts
from supervisor.cli.program import PROGRAM
from supervisor.cli.run_lookup import as_typed, spoken
from supervisor.cli.run_state import ENDED, Data, RunState, age_seconds, integer, text
from supervisor.cli.status_table import phase_word, step_of_steps, unwatched
from supervisor.cli.table import PHASE_COLOURS, painted
from supervisor.wire.text import printable

LABEL = 13
MAX_TEXT = 2000
SHOWN_REQUESTS = 5


def status_page(state: RunState, width: int | None = None) -> list[str]:
    """Its lines, folded for a terminal of `width` columns."""
    pairs = [
        ("Run", spoken(state.directory)),
        ("Directory", str(state.directory.root)),
        ("Phase", painted(phase_word(state), PHASE_COLOURS.get(phase_word(state)), bold=True)),
        ("Reason", _reason(state)),
        ("Supervisor", _supervisor(state)),
        ("Step", _step(state)),
        ("Loss", _loss(state)),
        ("Pace", _pace(state)),
        ("Attempt", _attempt(state)),
        *_nodes(state),
        ("Checkpoint", _checkpoint(state)),
        ("Incidents", _incidents(state)),
        ("Time", _time(state)),
        ("Conditions", _conditions(state)),
        *_requests(state),
    ]
    return [line for label, value in pairs if value for line in _labelled(label, value, width)]


def _labelled(label: str, value: str, width: int | None) -> list[str]:
    parts = [value]
    if width is not None and LABEL + len(value) > width > 2 * LABEL and "\x1b" not in value:
        parts = textwrap.wrap(value, width - LABEL, break_on_hyphens=False)
    heads = [f"{label}:" if label else "", *[""] * len(parts)]
    return [f"{head:<{LABEL}}{part}" for head, part in zip(heads, parts, strict=False)]


def _reason(state: RunState) -> str:
    if state.damage:
        return state.damage
    reason, message = state.text("reason"), as_typed(state.text("message"), state.name, state.directory)
    before = "every process of it has ended; what was said last is " if state.stopped else ""
    return printable(f"{before}{reason}: {message}" if message else f"{before}{reason}", MAX_TEXT)


def _supervisor(state: RunState) -> str:
    if state.supervisor is not None:
        return f"alive, process {state.supervisor}"
    if state.phase in ENDED:
        return "none is needed any more"
    return f"{unwatched(state) or 'none is alive'}; to continue: {PROGRAM} resume {spoken(state.directory)}"


def _step(state: RunState) -> str:
    step, total, tokens = state.integer("step"), state.integer("totalSteps"), state.integer("tokens")
    part = f" ({amounts.share(step / total)})" if step is not None and total else ""
    trained = f", {amounts.count(tokens)} tokens" if tokens is not None else ""
    return f"{step_of_steps(state)}{part}{trained}" if step is not None else ""


def _loss(state: RunState) -> str:
    loss, held_out = state.number("loss"), state.number("evalLoss")
    after = f", held-out {amounts.loss(held_out)}" if held_out is not None else ""
    return f"{amounts.loss(loss)}{after}" if loss is not None else ""


def _pace(state: RunState) -> str:
    pace, mfu, goodput = state.number("tokensPerSecond"), state.number("mfu"), state.number("goodput")
    parts = [f"{amounts.count(pace)} tokens/s"] if pace is not None else []
    measured = " of a measured peak" if state.status.get("peakIsMeasured") is True else ""
    parts += [f"MFU {amounts.share(mfu)}{measured}"] if mfu is not None else []
    parts += [f"goodput {amounts.share(goodput)}"] if goodput is not None else []
    return ", ".join(parts)


def _attempt(state: RunState) -> str:
    attempt, layout = state.integer("attempt"), state.section("layout")
    if not attempt:
        return ""
    shape = [integer(layout, key) for key in ("racks", "nodesPerRack", "ranksPerNode")]
    if None in shape:
        return str(attempt)
    racks, nodes, ranks = shape
    wanted = state.wanted_racks()
    return f"{attempt}, on {racks} of {wanted or racks} racks x {nodes} nodes x {ranks} ranks"


def _nodes(state: RunState) -> list[tuple[str, str]]:
    by_rack: dict[str, list[str]] = {}
    for node in state.items("nodes"):
        by_rack.setdefault(text(node, "rack"), []).append(f"{text(node, 'name')} {text(node, 'state')}")
    lines = [", ".join(nodes) for nodes in by_rack.values()]
    return [("Nodes" if number == 0 else "", printable(line, MAX_TEXT)) for number, line in enumerate(lines)]


def _checkpoint(state: RunState) -> str:
    newest = state.section("lastCheckpoint")
    attempt, step = integer(newest, "attempt"), integer(newest, "step")
    if attempt is None or step is None:
        return ""
    age = age_seconds(newest, "time")
    when = f", {amounts.span(age)} ago" if age is not None else ""
    return f"step {step} of attempt {attempt}{', verified' if newest.get('verified') is True else ''}{when}"


def _incidents(state: RunState) -> str:
    known = state.integer("incidents")
    if not known:
        return "" if known is None else "none"
    return f"{known} (marin-sup incidents {spoken(state.directory)})"


def _time(state: RunState) -> str:
    ledger = state.section("ledger")
    spent = {key: integer(ledger, key) or 0 for key in ledger}
    total = sum(spent.values())
    if not total:
        return ""
    largest = sorted(spent.items(), key=lambda item: -item[1])
    parts = [f"{name} {amounts.share(ms / total)}" for name, ms in largest if ms * 200 >= total]
    return f"{amounts.span(total / 1000)}: {', '.join(parts)}"


def _conditions(state: RunState) -> str:
    marks: dict[str, list[str]] = {"True": [], "Unknown": []}
    for condition in state.items("conditions"):
        marks.get(text(condition, "status"), []).append(text(condition, "type"))
    unknown = f"; not known: {', '.join(marks['Unknown'])}" if marks["Unknown"] else ""
    return printable(f"{', '.join(marks['True'])}{unknown}", MAX_TEXT) if state.items("conditions") else ""


def _requests(state: RunState) -> list[tuple[str, str]]:
    newest: list[Data] = state.items("requests")[-SHOWN_REQUESTS:]
    lines = [f"{text(r, 'id')} {text(r, 'outcome')}: {text(r, 'message')}" for r in newest]
    return [("Requests" if number == 0 else "", printable(line, MAX_TEXT)) for number, line in enumerate(lines)]
