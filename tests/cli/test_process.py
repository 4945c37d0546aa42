"""Commands as processes of their own: what they import, pipes, and signals."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor.cli.exit_codes import ExitCode
from supervisor.core.memory import Hold
from supervisor.core.reasons import Reason
from supervisor.local.memory_store import MemoryStore
from tests.cli import told_runs

COMMAND = [sys.executable, "-m", "supervisor"]


class Started:
    """A command that runs; its lines are taken one by one."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def line(self, seconds: float = 20) -> str:
        """The next one; empty at the end."""
        try:
            return self._lines.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError(f"no line within {seconds:g} s") from None

    def end(self) -> tuple[int, str, str]:
        """(exit code, the lines not taken yet, stderr)."""
        assert self.process.stderr is not None
        errors = self.process.stderr.read()
        code = self.process.wait(timeout=20)
        self._reader.join(timeout=20)
        return code, "".join(iter(self._lines.get, "")), errors

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put("")


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[Started]:
    with subprocess.Popen(
        [*COMMAND, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Started(process)
        finally:
            process.kill()


def test_status_needs_neither_pydantic_nor_rich(runs: Path, tmp_path: Path) -> None:
    told_runs.write_run(runs, told_runs.memory())
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "supervisor", "status"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines() if "|" in line}
    assert "supervisor.cli.app" in imported
    assert imported & {"pydantic", "rich", "yaml", "jax", "wandb", "kubernetes", "supervisor.local.supervise"} == set()
    assert "hero" in done.stdout


def test_watching_in_a_pipe_prints_one_line_per_change_and_ends_with_the_run(runs: Path, tmp_path: Path) -> None:
    told_runs.write_run(runs, told_runs.memory(), told_runs.progress(loss=3.0))
    with started(tmp_path, "status", "hero", "--watch", "--interval", "0.1") as watch:
        header, first = watch.line(), watch.line()
        assert header.split()[:3] == ["NAME", "PHASE", "STEP"]
        assert "3.000" in first
        told_runs.write_run(runs, told_runs.memory(), told_runs.progress(loss=3.0), updated_ms=told_runs.NOW - 1)
        told_runs.write_run(runs, told_runs.memory(), told_runs.progress(loss=2.0))
        assert "2.000" in watch.line()  # the rewrite before it changed nothing that is shown
        told_runs.write_run(runs, told_runs.succeeded())
        assert "Succeeded" in watch.line()
        assert watch.end() == (ExitCode.OK, "", "")
    assert "\x1b" not in header + first


@pytest.mark.parametrize("output", ["wide", "json", "name"])
def test_time_that_goes_by_is_no_news_to_a_pipe(output: str, runs: Path, tmp_path: Path) -> None:
    def held(wait_ms: int) -> None:
        spent = replace(told_runs.SPENT, held=wait_ms)
        ledger = replace(told_runs.held().ledger, run=spent)
        message = f"nobody answers since {wait_ms} ms"
        hold = Hold(Reason.NO_PROGRESS, message, "marin-sup resume hero", told_runs.NOW)
        memory = told_runs.held(ledger=ledger, hold=hold)
        told_runs.write_run(runs, memory, updated_ms=told_runs.NOW + wait_ms)

    held(1_000)
    with started(tmp_path, "status", "--watch", "--interval", "0.1", "-o", output) as watch:
        assert output != "wide" or watch.line().startswith("NAME")
        assert "hero" in watch.line()
        held(700_000)
        told_runs.write_run(runs, told_runs.succeeded(), name="next")
        assert "next" in watch.line(), "the held run is not told again"


def test_an_interrupted_watch_exits_130_without_a_traceback(runs: Path, tmp_path: Path) -> None:
    told_runs.write_run(runs, told_runs.memory())
    with started(tmp_path, "status", "--watch") as watch:
        watch.line()
        watch.line()
        watch.process.send_signal(signal.SIGINT)
        code, _, errors = watch.end()
    assert code == ExitCode.INTERRUPTED
    assert "Traceback" not in errors


@pytest.mark.parametrize("arguments", [("logs", "hero", "--tail", "0"), ("--help",)], ids=" ".join)
def test_a_reader_that_leaves_early_is_no_error(arguments: tuple[str, ...], runs: Path, tmp_path: Path) -> None:
    directory = told_runs.write_run(runs, told_runs.memory())
    told_runs.write_output(directory, 1, 0, "r0n0", b"a line of output\n" * 20_000)
    reading, writing = os.pipe()
    process = subprocess.Popen([*COMMAND, *arguments], cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    os.close(reading)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (ExitCode.OK, "")


def test_a_run_whose_reader_has_left_ends_as_it_ends(runs: Path, tmp_path: Path) -> None:
    directory = told_runs.write_run(runs, told_runs.succeeded())
    MemoryStore(directory.memory).save(told_runs.succeeded())
    reading, writing = os.pipe()
    command = [*COMMAND, "run", str(directory.manifest)]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    os.close(reading)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (ExitCode.OK, "")


def test_following_logs_sees_new_lines_rotation_and_new_attempts(runs: Path, tmp_path: Path) -> None:
    directory = told_runs.write_run(runs, told_runs.memory())
    output = told_runs.write_output(directory, 1, 0, "r0n0", b"one\ntwo\n")
    with started(tmp_path, "logs", "hero", "--rank", "0", "--tail", "1", "-f") as watch:
        assert watch.line() == "two\n"
        with output.open("ab") as file:
            file.write(b"three\nfo")
        assert watch.line() == "three\n"
        with output.open("ab") as file:
            file.write(b"ur\n")
        output.rename(output.with_name("output.log.1"))
        output.write_bytes(b"five\n")
        assert [watch.line(), watch.line()] == ["four\n", "five\n"]
        told_runs.write_output(directory, 2, 0, "r0n2", b"six\n")
        assert watch.line() == "six\n"
        told_runs.write_run(runs, told_runs.succeeded())
        assert watch.end() == (ExitCode.OK, "", "")


def test_help_answers_at_once(tmp_path: Path) -> None:
    """CPU time, since a shared machine has no honest clock: half a second is far above what it takes."""
    before = os.times()
    subprocess.run([*COMMAND, "--help"], cwd=tmp_path, capture_output=True, timeout=60, check=True)
    after = os.times()
    spent = (after.children_user - before.children_user) + (after.children_system - before.children_system)
    assert spent < 0.5
