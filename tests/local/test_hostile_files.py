"""Whatever lies in the folders that other terminals write to, the run goes on and well-formed words are still heard."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor.local.rundir import RunDirectory
from supervisor.local.worker_processes import WorkerProcesses
from supervisor.wire.json_file import read_json
from tests.local.run_process import running
from tests.local.test_bad_input import screen_of, scripted


def leave_garbage(folder: Path) -> None:
    (folder / "a.json").write_bytes(b"\xff\x00 not text")
    (folder / "b.json").write_bytes(b"[" * 60_000)
    (folder / "c.json").symlink_to("/dev/zero")
    (folder / "d.json").symlink_to("/nonexistent")
    (folder / "e.json").mkdir()
    (folder / "f.json").write_text('{"verb": ["x"], "target": {"a": 1}, "id": "../..", "resume": {"step": -1}}')
    (folder / "g.json").write_bytes(b"x" * (1 << 20))
    os.mkfifo(folder / "h.json")


def test_garbage_among_requests_and_chaos_orders_is_passed_over(tmp_path: Path) -> None:
    with running(tmp_path, scripted("--steps", "100000", "--step-seconds", "0.02")) as run:
        run.until(lambda: run.step() > 2, "it trains")
        leave_garbage(run.directory / "requests")
        leave_garbage(run.directory / "chaos")
        assert run.call("checkpoint").returncode == 0, run.story()
        assert run.call("chaos", "kill-rank", "0").returncode == 0, run.story()
        run.until(lambda: len(run.attempts()) == 2, "the fault is recovered from")
        assert run.call("stop").returncode == 0
        assert run.wait(60) == 0, run.story()
        screen_of(run)
        assert "b.json" in (run.directory / "supervisor.log").read_text()


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_text("{")])
def test_a_worker_is_found_whatever_became_of_its_file(damage: Callable[[Path], object], tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.create()
    processes = WorkerProcesses(directory, dict(os.environ))
    processes.start("r0n0")
    try:
        worker = processes.find("r0n0")
        damage(directory.node("r0n0") / "worker.json")
        assert processes.find("r0n0") == worker
        assert processes.find("r0n1") is None
    finally:
        processes.kill("r0n0")
    assert worker is not None
    assert not worker.alive(), "kill-node reaches it as well"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"[" * 100_000, "nested too deeply", id="deep"),
        pytest.param(b'"' + b"x" * (1 << 20) + b'"', "longer than", id="long"),
        pytest.param(b"\xff\xfe\xff", "decode", id="no text"),
        pytest.param(b"", "Expecting value", id="empty"),
    ],
)
def test_a_file_that_holds_no_json_is_a_value_error(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=said):
        read_json(path)


def test_a_pipe_keeps_no_reader_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="not a regular file"):
        read_json(tmp_path / "pipe")
