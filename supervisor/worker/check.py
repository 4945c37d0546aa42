"""Asking the trainer which layouts divide and fit, before anything is started: the contract's MARIN_SUP_CHECK."""

from __future__ import annotations

import dataclasses
import json
import os
import selectors
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from supervisor.wire import contract
from supervisor.wire.codec import decode
from supervisor.wire.events import Event, Rejected, parse_event
from supervisor.wire.messages import TrainerCommand
from supervisor.worker.descendants import ENV_MARK, kill_session
from supervisor.worker.event_pipe import EventPipe
from supervisor.worker.output import OutputLog
from supervisor.worker.program import launch, rank_base_environment

DEADLINE = 60.0  # seconds; a trainer needs a few to import its libraries
MAX_LAYOUTS = 1000
STRAY_PATIENCE = 2.0  # seconds; one that does not answer the question may yet say, by its exit, that it cannot run
REFUSALS = {
    contract.EXIT_CONFIG: "the trainer refused its configuration",
    contract.EXIT_DATA: "the trainer refused its data",
}
TURN_BYTES = 64 << 10
LAST_BYTES = 1 << 20


@dataclass(slots=True)
class _Answers:
    """What the trainer has said so far; `strayed`: an event that shows that it trains instead."""

    layouts: list[Event] = field(default_factory=list)
    strayed: str = ""


def check(arguments: dict[str, Any], deadline: float = DEADLINE) -> dict[str, Any]:
    """{trainer, layouts: [{racks, nodesPerRack, ranksPerNode}]} -> {state, answers, exit_code, output, reason}.

    answered     one answer for each layout, and exit 0 or 78
    not-checked  the trainer does not know the question: it trained, or ended or was silent without an answer
    failed       it knows it cannot run (78, 65), or it stopped half-way through its answers
    """
    if not isinstance(arguments.get("trainer"), dict):
        raise ValueError("trainer: an object of module or command, args and so on is needed")
    trainer = decode(TrainerCommand, arguments["trainer"])
    layouts = arguments.get("layouts")
    if not isinstance(layouts, list) or not 0 < len(layouts) <= MAX_LAYOUTS:
        raise ValueError(f"layouts: a list of 1 to {MAX_LAYOUTS} layouts is needed")
    if problem := contract.trainer_problem(trainer):
        return _result("failed", _Answers(), contract.EXIT_CONFIG, "", problem)
    with tempfile.TemporaryDirectory(prefix="marin-sup-check-") as name:
        directory = Path(name)
        question = directory / "layouts"
        question.write_text("".join(json.dumps(layout) + "\n" for layout in layouts), encoding="utf-8")
        output = OutputLog(directory / "output.log")
        pipe = EventPipe(directory / "events")
        try:
            answers, code = _run(trainer, question, pipe, output, time.monotonic() + deadline)
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            return _result("failed", _Answers(), contract.EXIT_CONFIG, "", f"the trainer cannot be started: {error}")
        finally:
            pipe.close()
            output.close()
    state, reason = _verdict(answers, len(layouts), code, deadline)
    return _result(state, answers, code, output.tail(), reason)


def _verdict(answers: _Answers, asked: int, code: int | None, deadline: float) -> tuple[str, str]:
    if len(answers.layouts) == asked and code in (contract.EXIT_DONE, contract.EXIT_CONFIG):
        return "answered", ""
    if code in REFUSALS:
        return "failed", REFUSALS[code]
    if answers.strayed:
        return "not-checked", f"it answered with the event {answers.strayed}: it trains and does not know the question"
    ended = f"it gave no answer in {deadline:.0f} s" if code is None else f"it ended with {code}"
    if answers.layouts:
        return "failed", f"{len(answers.layouts)} of {asked} layouts were answered, then {ended}"
    return "not-checked", f"{ended} without an answer"


def _run(
    trainer: TrainerCommand, question: Path, pipe: EventPipe, output: OutputLog, until: float
) -> tuple[_Answers, int | None]:
    """The answers and the exit code (negative: a signal); None where it had to be killed."""
    environment = {
        **rank_base_environment(Path(os.environ.get(ENV_MARK, str(question.parent)))),
        **trainer.environment,
        contract.ENV_CONTRACT: contract.CONTRACT,
        contract.ENV_CHECK: str(question),
        contract.ENV_EVENTS: str(question.with_name("events")),
    }
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    try:
        process = launch(dataclasses.asdict(trainer), environment, trainer.working_directory, write_end)
    except OSError:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
    answers = _Answers()
    try:
        code = _watch(process, read_end, pipe, output, answers, until)
    finally:
        process.kill()
        process.wait()
        kill_session(process.pid)
        _drain(read_end, pipe, output, answers)
        os.close(read_end)
    return answers, code


def _watch(
    process: subprocess.Popen[bytes], read_end: int, pipe: EventPipe, output: OutputLog, answers: _Answers, until: float
) -> int | None:
    selector = selectors.DefaultSelector()
    strayed = False
    ended = os.pidfd_open(process.pid)
    for descriptor in (ended, read_end, pipe.descriptor):
        selector.register(descriptor, selectors.EVENT_READ)
    try:
        while (left := until - time.monotonic()) > 0:
            ready = {key.fd for key, _ in selector.select(left)}
            if ended in ready:
                return process.wait()
            if read_end in ready and _read_output(read_end, output) is None:
                selector.unregister(read_end)
            _read_answers(pipe, answers)
            if answers.strayed and not strayed:
                strayed, until = True, min(until, time.monotonic() + STRAY_PATIENCE)
        return None
    finally:
        selector.close()
        os.close(ended)


def _drain(read_end: int, pipe: EventPipe, output: OutputLog, answers: _Answers) -> None:
    for _ in range(LAST_BYTES // TURN_BYTES):
        if not _read_output(read_end, output) and not _read_answers(pipe, answers):
            return


def _read_output(read_end: int, output: OutputLog) -> int | None:
    """Bytes read; None at the end."""
    try:
        data = os.read(read_end, TURN_BYTES)
    except BlockingIOError:
        return 0
    output.append(data)
    return len(data) or None


def _read_answers(pipe: EventPipe, answers: _Answers) -> int:
    size, lines = pipe.read(TURN_BYTES)
    for line in lines:
        event = parse_event(line)
        if isinstance(event, Rejected):
            continue  # garbage answers nothing
        if event["event"] != "layout":
            answers.strayed = answers.strayed or str(event["event"])
        elif len(answers.layouts) < MAX_LAYOUTS:
            answers.layouts.append(event)
    return size


def _result(state: str, answers: _Answers, code: int | None, output: str, reason: str) -> dict[str, Any]:
    members = ("layout", "fits", "microbatches", "memoryBytes", "reason")
    given = [{name: event.get(name) for name in members} for event in answers.layouts]
    return {"state": state, "answers": given, "exit_code": code, "output": output, "reason": reason}
