"""One directory, one supervisor."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from supervisor.local.clock import LocalClock
from supervisor.local.rundir import RunDirectory, RunDirectoryError, claim, write_atomically
from tests.observe.test_append_file import files_of_at_most


def test_a_second_supervisor_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    with claim(directory), pytest.raises(RunDirectoryError, match=f"pid {os.getpid()}"):
        claim(directory)
    with claim(directory):
        assert directory.supervisor_pid() == os.getpid()


def test_a_supervisor_that_is_gone_is_not_reported_alive(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    assert directory.supervisor_pid() is None
    claim(directory).close()
    assert directory.supervisor_pid() is None


def test_a_directory_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirectoryError, match="--workdir"):
        RunDirectory(tmp_path / "file" / "run").create()


def test_a_replaced_file_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    for content in (b"one", b"two"):
        write_atomically(path, content)
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["file.json"]


def test_the_clock_never_begins_before_what_memory_has_seen() -> None:
    future = 4_000_000_000_000
    clock = LocalClock(not_before_ms=future)
    assert clock.now_ms() >= future
    assert clock.take_jump() == 0


def test_a_clock_that_jumps_forward_by_a_day_is_an_absence_and_one_set_back_is_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wall = [1_000_000_000_000]
    monkeypatch.setattr("supervisor.local.clock._wall_ms", lambda: wall[0])
    clock = LocalClock()
    before = clock.now_ms()
    wall[0] += 86_400_000
    after = clock.now_ms()
    assert 86_400_000 <= after - before < 86_401_000
    assert clock.take_jump() >= 86_399_000
    assert clock.take_jump() == 0
    wall[0] -= 172_800_000
    assert after <= clock.now_ms() < after + 1_000
    assert clock.take_jump() == 0


def test_a_full_disk_is_said_before_anything_starts(tmp_path: Path) -> None:
    with files_of_at_most(1000), pytest.raises(RunDirectoryError, match=r"cannot be written .*--workdir"):
        RunDirectory(tmp_path).create()
