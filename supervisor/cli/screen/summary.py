"""What is worth saying once a run has come to an end, or to a halt."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from supervisor.cli import amounts, incident_words
from supervisor.cli.program import PROGRAM
from supervisor.cli.run_lookup import as_typed, spoken
from supervisor.cli.table import table
from supervisor.core.incident import Incident
from supervisor.core.ledger import Category
from supervisor.core.memory import Memory, Phase
from supervisor.local.rundir import RunDirectory
from supervisor.observe.progress import Progress
from supervisor.wire.text import printable

BAR = 30  # characters
MAX_TEXT = 2000
SHOWN_INCIDENTS = 20
INTERRUPTED = (Phase.PENDING, Phase.STARTING, Phase.RUNNING, Phase.RECOVERING)


def summary(
    directory: RunDirectory,
    name: str,
    memory: Memory,
    progress: Progress,
    incidents: Sequence[Incident],
    width: int | None = None,
) -> list[str]:
    """Lines for a log, or folded for a terminal of `width` columns.

    `name`: of the manifest, which the core uses in its sentences.
    """
    blocks = [
        _headline(directory, name, memory, progress),
        _incidents(directory, name, incidents),
        _where_the_time_went(memory),
        _training(memory, progress),
        _what_next(directory, memory, incidents),
    ]
    lines: list[str] = []
    for block in blocks:
        lines += ["", *block] if lines and block else block
    return [part for line in lines for part in _folded(line, width)]


def _folded(line: str, width: int | None) -> list[str]:
    if width is None or len(line) <= width:
        return [line]
    return textwrap.wrap(line, width, subsequent_indent="    ", break_on_hyphens=False) or [line]


def _headline(directory: RunDirectory, name: str, memory: Memory, progress: Progress) -> list[str]:
    elapsed = amounts.span(memory.ledger.run.total() / 1000)
    steps = f"step {max(memory.high_step, memory.attempt.completed if memory.attempt else 0)}"
    total = memory.total_steps or progress.total_steps
    of = f" of {total}" if total else ""
    if memory.phase in INTERRUPTED:
        return [_interrupted(directory, memory, f"{steps}{of}")]
    words = {Phase.SUCCEEDED: "succeeded", Phase.SUSPENDED: "is suspended", Phase.HELD: "is held"}
    state = words.get(memory.phase, f"is {memory.phase.value}")
    head = f"{spoken(directory)} {state}: {steps}{of}, {elapsed}, attempts: {memory.newest_attempt}"
    if memory.hold is None:
        return [head]
    reason = as_typed(f"{memory.hold.reason.value}: {memory.hold.message}", name, directory)
    way_out = as_typed(memory.hold.way_out, name, directory)
    return [head, f"  why      {printable(reason, MAX_TEXT)}", f"  way out  {printable(way_out, MAX_TEXT)}"]


def _interrupted(directory: RunDirectory, memory: Memory, where: str) -> str:
    newest = memory.checkpoints[-1].checkpoint if memory.checkpoints else None
    saved = f"the newest checkpoint is step {newest.step}" if newest else "no checkpoint was saved"
    run = spoken(directory)
    return f"{run} was stopped by a second interrupt at {where}; {saved}; {PROGRAM} resume {run} goes on from there"


def _incidents(directory: RunDirectory, name: str, incidents: Sequence[Incident]) -> list[str]:
    if not incidents:
        return ["no incidents"]
    shown = incidents[-SHOWN_INCIDENTS:]
    rows = [
        (
            incident.name,
            incident_words.cause(incident),
            incident_words.blame(incident),
            incident_words.action(incident),
            amounts.NONE if incident.steps_lost is None else str(incident.steps_lost),
            amounts.seconds(incident_words.lost_ms(incident)),
            incident.outcome.value,
        )
        for incident in shown
    ]
    headers = ("INCIDENT", "CAUSE", "BLAME", "ACTION", "STEPS-LOST", "SECONDS-LOST", "OUTCOME")
    lines = table(headers, rows, ("STEPS-LOST", "SECONDS-LOST"))
    earlier = len(incidents) - len(shown)
    more = [f"({earlier} earlier ones are not shown)"] if earlier else []
    sentences = [as_typed(incident_words.sentence(incident), name, directory) for incident in shown]
    return [*lines, *more, *(f"  {printable(sentence, MAX_TEXT)}" for sentence in sentences)]


def _where_the_time_went(memory: Memory) -> list[str]:
    times = memory.ledger.run
    total = times.total()
    if not total:
        return []
    spent = sorted(((times.of(c), c) for c in Category if times.of(c)), key=lambda part: -part[0])
    rows = [
        f"  {category.value:<12} {amounts.seconds(ms):>8} s {amounts.share(ms / total):>5}  {_bar(ms / total)}"
        for ms, category in spent
    ]
    return [f"where the time went ({amounts.seconds(total)} s in all)", *(row.rstrip() for row in rows)]


def _bar(part: float) -> str:
    return "#" * round(BAR * part)


def _training(memory: Memory, progress: Progress) -> list[str]:
    if progress.loss is None:
        return []
    held_out = f"; held-out {amounts.loss(progress.eval_loss)}" if progress.eval_loss is not None else ""
    lines = [f"loss     {amounts.loss(progress.first_loss)} first, {amounts.loss(progress.loss)} last{held_out}"]
    if progress.mfu is not None:
        measured = " of a measured peak" if progress.peak_is_measured else ""
        pace = f"{amounts.count(progress.tokens_per_second)} tokens/s at the end"
        lines.append(f"pace     {pace}, MFU {amounts.share(progress.mfu)}{measured}")
    lines.append(f"goodput  {amounts.share(memory.ledger.goodput())} of the time was training that counted")
    return lines


def _what_next(directory: RunDirectory, memory: Memory, incidents: Sequence[Incident]) -> list[str]:
    run = spoken(directory)
    tries = []
    if memory.phase in (Phase.SUSPENDED, Phase.HELD, *INTERRUPTED):
        tries.append((f"{PROGRAM} resume {run}", "continue it"))
    if incidents:
        tries.append((f"{PROGRAM} incidents {run} -o wide", "what each incident cost, by category"))
        tries.append((f"{PROGRAM} logs {run} --incident {incidents[-1].name}", "the last words of the ranks"))
    tries.append((f"{PROGRAM} explain {run}", "the last decision, and why"))
    tries.append((f"{PROGRAM} status {run}", "everything else"))
    width = max(len(command) for command, _ in tries)
    return ["what to try next", *(f"  {command:<{width}}  {why}" for command, why in tries)]
