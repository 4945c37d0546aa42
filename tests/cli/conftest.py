"""Commands are called in this process, at a fixed moment, in UTC, with the runs of a folder of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from supervisor.cli import run_state
from supervisor.cli.app import run_command
from tests.cli import told_runs


@dataclass(frozen=True, slots=True)
class Said:
    code: int
    out: str
    err: str


Call = Callable[..., Said]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that holds the runs; the working directory is the one above it."""
    folder = tmp_path / "runs"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MARIN_SUP_RUNS", raising=False)
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setattr(run_state, "wall_seconds", lambda: told_runs.NOW / 1000)
    time.tzset()
    yield folder
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def call(runs: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    def called(*arguments: str) -> Said:
        capsys.readouterr()
        code = run_command([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return called
