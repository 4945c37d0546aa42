"""A run that is started again goes on with what it was started with, or says what differs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from supervisor.api.dump import to_yaml
from supervisor.cli.exit_codes import ExitCode
from supervisor.core.memory import Memory
from supervisor.local.kept_options import going_on
from supervisor.local.memory_store import MemoryStore
from supervisor.local.run_options import RunOptions
from supervisor.local.rundir import RunDirectory, write_json
from tests.cli import told_runs
from tests.cli.conftest import Call


def started(runs: Path, memory: Memory, *data: str) -> RunDirectory:
    directory = told_runs.write_run(runs, memory)
    MemoryStore(directory.memory).save(memory)
    write_json(directory.options, {"data": list(data), "workingDirectory": os.getcwd()})
    return directory


def the_file(tmp_path: Path, **spec: object) -> str:
    path = tmp_path / "hero.yaml"
    path.write_text(to_yaml(told_runs.manifest(**spec)))
    return str(path)


NEVER_TRAINED = told_runs.memory(newest_attempt=0, attempt=None, checkpoints=())


def options(directory: RunDirectory, *data: str) -> RunOptions:
    return RunOptions(told_runs.manifest(), directory, data=data)


def test_without_data_the_run_keeps_those_it_had_wherever_it_is_started(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = started(runs, told_runs.memory(), "books")
    directory = RunDirectory(directory.root.resolve())
    books = (str((tmp_path / "books").resolve()),)
    monkeypatch.chdir("/")
    assert going_on(options(directory), told_runs.memory()).data == books
    assert going_on(options(directory, *books), told_runs.memory()).data == books


@pytest.mark.parametrize(
    ("had", "sentence"),
    [(("books",), "this run reads {folder}/books; give the same --data, or another --workdir"),
     ((), "this run was started without --data; leave it out, or another --workdir")],
    ids=["others", "none"],
)  # fmt: skip
def test_a_run_that_has_trained_reads_no_other_data(
    had: tuple[str, ...], sentence: str, runs: Path, tmp_path: Path, call: Call
) -> None:
    directory = started(runs, told_runs.memory(), *had)
    (tmp_path / "news").mkdir()
    said = call("run", the_file(tmp_path), "--data", "news")
    assert (said.code, said.out) == (ExitCode.USAGE, "")
    assert sentence.format(folder=tmp_path.resolve()) in said.err
    assert json.loads(directory.options.read_text())["data"] == list(had)


@pytest.mark.parametrize("memory", [None, NEVER_TRAINED], ids=["no memory", "no attempt yet"])
def test_a_run_without_an_attempt_may_read_other_data(memory: Memory | None, runs: Path) -> None:
    directory = started(runs, NEVER_TRAINED, "books")
    assert going_on(options(directory, "news"), memory).data == ("news",)


def test_a_run_that_succeeded_says_that_nothing_was_started(runs: Path, tmp_path: Path, call: Call) -> None:
    directory = started(runs, told_runs.succeeded())
    before = directory.manifest.read_bytes()
    said = call("run", the_file(tmp_path, suspend=True))
    assert (said.code, said.err) == (ExitCode.OK, "")
    assert said.out.startswith("hero succeeded earlier; nothing was started\n")
    assert directory.manifest.read_bytes() == before


def test_a_run_that_succeeded_is_not_trained_on_with_another_manifest(runs: Path, tmp_path: Path, call: Call) -> None:
    directory = started(runs, told_runs.succeeded())
    before = directory.manifest.read_bytes()
    file = the_file(tmp_path, schedule={"tokenBudget": 10**9})
    said = call("run", file)
    assert (said.code, said.out) == (ExitCode.USAGE, "")
    assert f"{file} differs from what this run was started with" in said.err
    assert "choose another name or --workdir" in said.err
    assert directory.manifest.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("resume", "hero"), "hero has succeeded already; there is nothing to resume"),
        (("checkpoint", "hero"), "hero has succeeded already; nothing of it runs"),
        (("chaos", "hero", "kill-node", "r0n0"), "hero has succeeded already; nothing of it runs"),
        (("chaos", "hero", "revive-node", "r0n1"), "hero has succeeded already; nothing of it runs"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_nothing_can_be_asked_of_a_run_that_succeeded(
    arguments: tuple[str, ...], sentence: str, runs: Path, call: Call
) -> None:
    started(runs, told_runs.succeeded())
    said = call(*arguments)
    assert (said.code, said.out, said.err) == (ExitCode.FAILED, "", f"marin-sup: {sentence}\n")


def test_damaged_options_leave_what_is_given(runs: Path) -> None:
    directory = started(runs, told_runs.memory(), "books")
    directory.options.write_text("{")
    assert going_on(options(directory, "news"), told_runs.memory()).data == ("news",)
