"""A disk that is full for a while: nothing half written stays, and what failed can be written again."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from supervisor.observe.append_file import AppendFile
from supervisor.observe.journal import Journal, read_journal


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Like a full disk: a write is cut short at `size`, the one after it fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_is_cut_short_is_taken_back_however_often_it_fails(tmp_path: Path) -> None:
    file = AppendFile(tmp_path / "file")
    file.append(b"first\n")
    with files_of_at_most(10):
        for _ in range(3):
            with pytest.raises(OSError, match="too large"):
                file.append(b"second, which does not fit\n")
            assert (tmp_path / "file").read_bytes() == b"first\n"
    file.append(b"second\n")
    assert (tmp_path / "file").read_bytes() == b"first\nsecond\n"


def test_a_journal_on_a_disk_that_was_full_holds_whole_entries_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    entries = [{"kind": "note", "number": number} for number in range(3)]
    journal.append(entries[0])
    with files_of_at_most(50), pytest.raises(OSError, match="too large"):
        journal.append(*entries[1:])
    assert list(read_journal(tmp_path / "journal.jsonl")) == entries[:1]
    journal.append(*entries[1:])
    journal.close()
    assert list(read_journal(tmp_path / "journal.jsonl")) == entries


def test_half_a_line_of_a_killed_process_spoils_none_that_follows(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"whole\nhal")
    AppendFile(tmp_path / "file").append(b"next\n")
    assert (tmp_path / "file").read_bytes() == b"whole\nhal\nnext\n"
