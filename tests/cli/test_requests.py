"""Requests and chaos orders: what is left in the run's directory, and how their outcomes are waited for."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from supervisor.api.convert import core_request
from supervisor.api.requests import Request
from supervisor.cli.exit_codes import ExitCode
from supervisor.core.memory import RequestOutcome, RequestState
from supervisor.core.observation import Ask
from supervisor.local.rundir import RunDirectory, claim
from tests.cli import told_runs
from tests.cli.conftest import Call


def wait_for(condition: Callable[[], Any], what: str, seconds: float = 10) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.01)
    raise AssertionError(f"not within {seconds:g} s: {what}")


def asked(directory: RunDirectory) -> dict[str, Any] | None:
    """The newest request that somebody left."""
    paths = sorted(directory.requests.glob("*.json"))
    return json.loads(paths[-1].read_text()) if paths else None


@pytest.mark.parametrize(
    ("arguments", "ask", "from_step"),
    [
        (("checkpoint", "hero", "--no-wait"), Ask.CHECKPOINT_NOW, None),
        (("stop", "hero", "--no-wait"), Ask.STOP, None),
        (("resume", "hero", "--from-step", "40", "--timeout", "1ms"), Ask.RESUME, 40),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_a_request_is_the_object_of_the_resource(
    arguments: tuple[str, ...], ask: Ask, from_step: int | None, runs: Path, call: Call
) -> None:
    directory = told_runs.write_run(runs, told_runs.memory())
    with claim(directory):
        call(*arguments)
        call(*arguments)
    files = list(directory.requests.glob("*.json"))
    requests = [core_request(Request.model_validate(json.loads(path.read_text()))) for path in files]
    assert len({request.id for request in requests}) == 2
    assert {(request.ask, request.from_step) for request in requests} == {(ask, from_step)}


@pytest.mark.parametrize(
    ("state", "message", "code"),
    [
        (RequestState.DONE, "saved as a2:84", ExitCode.OK),
        (RequestState.REFUSED, "nothing trains now (the run is Held)", ExitCode.FAILED),
        (RequestState.PENDING, "attempt 2 is asked to save", ExitCode.TIMED_OUT),
    ],
    ids=lambda value: value.value if isinstance(value, RequestState) else None,
)
def test_the_outcome_of_a_request_is_waited_for(
    state: RequestState, message: str, code: ExitCode, runs: Path, call: Call
) -> None:
    directory = told_runs.write_run(runs, told_runs.memory())

    def answer() -> None:
        request = wait_for(lambda: asked(directory), "a request")
        outcome = RequestOutcome(request["id"], Ask.CHECKPOINT_NOW, state, message)
        told_runs.write_run(runs, told_runs.memory(requests=(outcome,)))

    with claim(directory):
        supervisor = threading.Thread(target=answer)
        supervisor.start()
        said = call("checkpoint", "hero", "--timeout", "2s")
        supervisor.join()
    assert said.code == code
    assert message in (said.out if code is ExitCode.OK else said.err)


def test_chaos_leaves_an_order_and_waits_until_it_is_carried_out(runs: Path, call: Call) -> None:
    directory = told_runs.write_run(runs, told_runs.memory())

    def carry_out() -> None:
        (path,) = wait_for(lambda: list(directory.chaos.glob("*.json")), "an order")
        assert json.loads(path.read_text()) == {"verb": "kill-node", "target": "r0n0", "at": None}
        path.rename(path.with_suffix(".done"))

    with claim(directory):
        supervisor = threading.Thread(target=carry_out)
        supervisor.start()
        said = call("chaos", "hero", "kill-node", "r0n0")
        supervisor.join()
    assert (said.code, said.out) == (ExitCode.OK, "done: kill-node r0n0\n")


def test_stopping_waits_until_no_rank_runs_and_a_held_run_has_none(runs: Path, call: Call) -> None:
    directory = told_runs.write_run(runs, told_runs.memory())

    def answer() -> None:
        request = wait_for(lambda: asked(directory), "a request")
        outcome = RequestOutcome(request["id"], Ask.STOP, RequestState.DONE, "the run saves and stops")
        told_runs.write_run(runs, told_runs.held(requests=(outcome,)))

    with claim(directory):
        supervisor = threading.Thread(target=answer)
        supervisor.start()
        said = call("stop", "hero", "--timeout", "5s")
        supervisor.join()
    assert (said.code, said.out) == (ExitCode.OK, "the run saves and stops\nhero is Held at step 47\n")
