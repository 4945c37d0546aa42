"""The picture that `marin-sup run` keeps on a terminal; what happened scrolls by above it and stays."""

from __future__ import annotations

import logging

from rich.bar import Bar
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from supervisor.cli import amounts, incident_words
from supervisor.cli.run_lookup import as_typed
from supervisor.cli.screen.cells import fleet_cells, legend
from supervisor.core.decision import Note
from supervisor.core.memory import Memory, Phase, Stage
from supervisor.core.node_states import node_states
from supervisor.core.observation import Observation
from supervisor.core.reasons import Reason
from supervisor.core.spec import Spec
from supervisor.local.rundir import RunDirectory
from supervisor.local.screen import View
from supervisor.wire.text import printable

ROUTINE = frozenset({Reason.CHECKPOINT_COMMITTED})  # shown as a fact, and not as a line each
MAX_NOTE = 500
log = logging.getLogger(__name__)
MAX_TEXT = 300
PHASE_STYLES = {
    Phase.PENDING: "bold cyan",
    Phase.STARTING: "bold cyan",
    Phase.RUNNING: "bold green",
    Phase.RECOVERING: "bold yellow",
    Phase.SUSPENDED: "bold yellow",
    Phase.HELD: "bold red",
    Phase.SUCCEEDED: "bold green",
    Phase.FAILED: "bold red",
}
DOING = {
    "import": "the ranks import their modules",
    "init": "the ranks find each other",
    "restore": "the ranks read their checkpoint",
    "compile": "the ranks compile",
    "train": "the ranks train",
    "save": "the ranks save",
    "eval": "the ranks evaluate on held-out data",
    "exit": "the ranks end",
}


class LiveScreen:
    """Drawn only when the supervisor shows something: no thread of its own."""

    def __init__(self, spec: Spec, directory: RunDirectory, console: Console | None = None) -> None:
        self._spec = spec
        self._directory = directory
        self._console = console or Console()
        self._live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stderr=False)
        self._started = False
        self._gone = False
        self._closings = incident_words.Closings()

    def show(self, view: View) -> None:
        if self._gone:
            return
        try:
            self._draw(view)
        except OSError as error:
            self._leave(error)

    def close(self) -> None:
        if not self._started or self._gone:
            return
        try:
            self._live.stop()
        except OSError as error:
            self._leave(error)

    def _leave(self, error: OSError) -> None:
        """The terminal is gone; the run is not."""
        self._gone = True
        log.warning("the terminal cannot be written to any more: %s", error)

    def _draw(self, view: View) -> None:
        if not self._started:
            self._started = True
            self._live.start()
        for note in view.notes:
            if note.reason not in ROUTINE:
                self._console.print(self._note(note, view.now_ms), overflow="fold")
        for incident in self._closings.new(view.incidents):
            line = (
                Text().append(amounts.clock(view.now_ms), "dim").append(f"  {incident_words.closing(incident)}", "bold")
            )
            self._console.print(line, overflow="fold")
        self._live.update(picture(view, self._spec, self._directory, self._console.width), refresh=True)

    def _note(self, note: Note, now_ms: int) -> Text:
        line = Text().append(amounts.clock(now_ms), "dim").append(f"  {note.reason.value}", "bold")
        message = as_typed(note.message, self._spec.name, self._directory)
        return line.append(f"  {printable(message, MAX_NOTE)}")


def picture(view: View, spec: Spec, directory: RunDirectory, width: int) -> RenderableType:
    """All of the screen but the notes. At most about twelve lines on a fleet of two racks."""
    states = node_states(spec, view.memory, Observation(nodes=view.fleet.nodes(), workers=view.workers), view.now_ms)
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for label, value in _facts(view, spec, directory):
        facts.add_row(label, value)
    facts.add_row("nodes", fleet_cells(states, width - 10))
    facts.add_row("", legend(states))
    return Group(Rule(style="dim"), _headline(view, spec), _bar(view.memory, width), facts)


def _headline(view: View, spec: Spec) -> RenderableType:
    memory = view.memory
    left = Text(f"{spec.name}  ", "bold")
    left.append(memory.phase.value, PHASE_STYLES[memory.phase])
    attempt = memory.attempt.number if memory.attempt else memory.newest_attempt
    left.append(f"  attempt {attempt}" if attempt else "  no attempt yet", "default")
    right = Text(amounts.span((view.now_ms - memory.ledger.started_ms) / 1000), "dim")
    line = Table.grid(expand=True)
    line.add_column()
    line.add_column(justify="right")
    line.add_row(left, right)
    return line


def _bar(memory: Memory, width: int) -> RenderableType:
    step = _step(memory)
    total = memory.total_steps
    if not total:
        return Text(f"step {step}")
    label = f"step {step} of {total}  {amounts.share(step / total)}"
    line = Table.grid(expand=True, padding=(0, 1))
    line.add_column(ratio=1)
    line.add_column(justify="right", no_wrap=True)
    line.add_row(Bar(total, 0, min(step, total), color="green", bgcolor="grey23"), label)
    return line


def _step(memory: Memory) -> int:
    attempt = memory.attempt
    if attempt is None:
        return memory.high_step
    return max(attempt.completed, attempt.parent.step if attempt.parent else 0)


def _facts(view: View, spec: Spec, directory: RunDirectory) -> list[tuple[str, Text]]:
    rows = [("now", Text(printable(doing(view, spec, directory), MAX_TEXT)))]
    if numbers := _numbers(view):
        rows.append(("training", Text(numbers)))
    if saved := _saved(view):
        rows.append(("saved", Text(saved)))
    if view.incidents:
        last = view.incidents[-1]
        text = Text(printable(as_typed(incident_words.sentence(last), spec.name, directory), MAX_TEXT))
        text.append(f" ({last.outcome.value})", "dim")
        rows.append(("incident", text))
    if view.memory.hold is not None:
        way_out = as_typed(view.memory.hold.way_out, spec.name, directory)
        rows.append(("way out", Text(printable(way_out, MAX_TEXT), "bold")))
        rows.append(("leave", Text("Ctrl-C; the run stays held")))
    return rows


def _saved(view: View) -> str:
    if not view.memory.checkpoints:
        return ""
    newest = view.memory.checkpoints[-1].checkpoint
    at = view.progress.commit_times.get(newest)
    ago = f", {amounts.span((view.now_ms - at) / 1000)} ago" if at is not None else ""
    return f"step {newest.step} of attempt {newest.attempt}{ago}"


def doing(view: View, spec: Spec, directory: RunDirectory) -> str:
    """What is being done now, in a sentence."""
    memory, attempt = view.memory, view.memory.attempt
    if attempt is None or attempt.stage is Stage.STOPPING:
        return as_typed(memory.message, spec.name, directory)
    layout = attempt.placement.layout
    where = f"attempt {attempt.number} on {layout.racks} of {spec.layout.racks} racks"
    if attempt.stage is Stage.SAVING:
        return f"{where}: saving, then it stops"
    if attempt.stage is Stage.STEPPING and attempt.completed < memory.high_step:
        return f"{where}: steps up to {memory.high_step} are done again"
    phase = DOING.get(view.progress.phase) if view.progress.attempt == attempt.number else None
    return f"{where}: {phase or 'the ranks start'}"


def _numbers(view: View) -> str:
    progress = view.progress
    parts = []
    if progress.loss is not None:
        parts.append(f"loss {amounts.loss(progress.loss)}")
    if progress.eval_loss is not None:
        parts.append(f"held-out {amounts.loss(progress.eval_loss)}")
    if progress.tokens_per_second is not None:
        parts.append(f"{amounts.count(progress.tokens_per_second)} tokens/s")
    if progress.mfu is not None:
        measured = " (measured peak)" if progress.peak_is_measured else ""
        parts.append(f"MFU {amounts.share(progress.mfu)}{measured}")
    goodput = view.memory.ledger.goodput()
    if goodput is not None and parts:
        parts.append(f"goodput {amounts.share(goodput)}")
    return "  ".join(parts)
