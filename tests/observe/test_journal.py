"""History survives crashes, and what a trainer says is folded as it is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from supervisor.core.observation import Checkpoint
from supervisor.observe.journal import Journal, read_journal
from supervisor.observe.progress import Progress


def test_entries_come_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.append({"kind": "note", "n": 1}, {"kind": "note", "n": 2})
    journal.flush()
    assert [entry["n"] for entry in read_journal(path)] == [1, 2]


def test_a_line_cut_off_by_a_crash_costs_that_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    Journal(path).append({"kind": "note", "n": 1})
    with path.open("ab") as file:
        file.write(b'{"kind": "note", "n"')
    Journal(path).append({"kind": "note", "n": 3})
    assert [entry["n"] for entry in read_journal(path)] == [1, 3]


@pytest.mark.parametrize("line", [b"null", b"[]", b"{}", b"\xff\xfe", b'{"kind": 3}', b"", b"x" * 3_000_000])
def test_garbage_in_the_journal_is_passed_over(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(line + b'\n{"kind": "note", "n": 1}\n')
    assert [entry["n"] for entry in read_journal(path)] == [1]


def test_there_may_be_no_journal_yet(tmp_path: Path) -> None:
    assert list(read_journal(tmp_path / "journal.jsonl")) == []


HELLO = {
    "event": "hello",
    "totalSteps": 10,
    "tokensPerStep": 100,
    "flopsPerStep": 4e6,
    "peakFlopsPerDevice": 1e6,
    "devices": 2,
    "parameters": 5,
}


def completed(step: int, loss: float = 1.0) -> dict[str, object]:
    return {"event": "step", "state": "completed", "step": step, "loss": loss}


def test_pace_and_utilisation_are_measured_between_steps() -> None:
    progress = Progress()
    progress.feed(0, 1, 0, HELLO)
    for step in range(1, 6):
        progress.feed(step * 4_000, 1, 0, completed(step))
    assert progress.seconds_per_step == 4.0
    assert progress.tokens_per_second == 25.0
    assert progress.mfu == 4e6 / 4.0 / (1e6 * 2)
    assert progress.tokens == 500


def test_without_a_peak_there_is_no_utilisation() -> None:
    progress = Progress()
    progress.feed(0, 1, 0, HELLO | {"peakFlopsPerDevice": None})
    for step in (1, 2):
        progress.feed(step * 1_000, 1, 0, completed(step))
    assert progress.mfu is None


def test_what_an_old_attempt_says_changes_nothing() -> None:
    progress = Progress()
    progress.feed(0, 2, 0, completed(7, loss=2.0))
    progress.feed(1, 1, 0, completed(9, loss=9.0))
    progress.feed(2, 1, 0, {"event": "checkpoint", "state": "committed", "attempt": 1, "step": 9})
    assert (progress.step, progress.loss, list(progress.commits)) == (7, 2.0, [])


def test_a_commit_in_another_attempts_name_is_none() -> None:
    progress = Progress()
    progress.feed(0, 1, 0, {"event": "checkpoint", "state": "committed", "attempt": 3, "step": 9})
    progress.feed(0, 1, 0, {"event": "checkpoint", "state": "committed", "attempt": 1, "step": 5})
    assert list(progress.commits) == [Checkpoint(1, 5)]


@pytest.mark.parametrize(
    "event",
    [
        {"event": "step", "state": "completed", "step": "seven"},
        {"event": "step", "state": "completed", "step": True},
        {"event": "hello", "totalSteps": [], "tokensPerStep": {}, "flopsPerStep": "x", "devices": None},
        {"event": "checkpoint", "state": "committed"},
        {"event": "alarm"},
        {"event": None},
        {},
    ],
)
def test_nonsense_from_a_trainer_is_survived(event: dict[str, object]) -> None:
    progress = Progress()
    progress.feed(0, 1, 0, event)
    assert (progress.step, progress.mfu, progress.tokens_per_second) == (0, None, None)
