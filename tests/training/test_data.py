"""Sample ids, windows and files."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.config import Data
from training.data import Batches, index_files, open_batches, text_files
from training.outcome import DataError
from training.permutation import permute
from training.shares import share_out


def batches_of(folder: Path, text: bytes, sequence: int = 4, heldout_every: int = 5) -> Batches:
    (folder / "text").write_bytes(text)
    return open_batches((folder / "text",), Data(sequence, 8, 8, heldout_every=heldout_every), seed=3)


@pytest.mark.parametrize("length", [1, 2, 3, 16, 17, 1000])
def test_a_permutation_visits_every_place_once(length: int) -> None:
    assert sorted(permute(i, length, (1, 2)) for i in range(length)) == list(range(length))


def test_another_epoch_has_another_order() -> None:
    orders = {tuple(permute(i, 100, (seed, epoch)) for i in range(100)) for seed in (1, 2) for epoch in (0, 1)}
    assert len(orders) == 4


def test_an_epoch_reads_every_training_window_once_and_no_heldout_one(tmp_path: Path) -> None:
    text = bytes(range(1, 202))  # 50 windows of 4 bytes; a window is known by its first byte
    batches = batches_of(tmp_path, text)
    firsts = [row[0] for row in batches.train_rows(range(40))]
    heldout = [row[0] for row in batches.heldout_rows(range(10))]
    assert sorted(firsts + heldout) == [text[4 * window] for window in range(50)]
    assert sorted(heldout) == [text[4 * window] for window in range(4, 50, 5)], "every fifth window"
    again = [row[0] for row in batches.train_rows(range(40, 80))]
    assert sorted(again) == sorted(firsts)
    assert again != firsts


def test_a_row_is_the_text_and_its_continuation(tmp_path: Path) -> None:
    batches = batches_of(tmp_path, bytes(range(1, 202)))
    for row in batches.train_rows(range(40)):
        assert row.tolist() == list(range(row[0], row[0] + 5))


def test_files_are_joined_in_order_with_a_zero_byte_between(tmp_path: Path) -> None:
    for name, text in {"b": b"BBB", "a": b"AAAA", "c/d": b"D", "empty": b"", ".hidden": b"x"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text)
    corpus = index_files(text_files((tmp_path,)), 1000)
    assert corpus.read(0, corpus.size) == b"AAAA\0BBB\0D\0"
    assert [corpus.read(i, 1) for i in range(corpus.size)] == [bytes([b]) for b in b"AAAA\0BBB\0D\0"]
    assert index_files(text_files((tmp_path,)), 6).read(0, 7) == b"AAAA\0B\0"


def test_by_default_it_is_the_standard_library_without_tests_or_installed_packages() -> None:
    files = text_files(())
    assert {"dataclasses.py", "ast.py"} <= {path.name for path in files}
    assert all("site-packages" not in path.parts and "test" not in path.parts for path in files)
    assert files == sorted(files)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty", b"", "empty"),
        ("binary", b"abc\0def", "a binary file"),
        ("short", b"a few words", "11 bytes of text|12 bytes of text"),
        ("absent", None, "no such file or folder"),
    ],
)
def test_unusable_data_is_named(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=message) as raised:
        open_batches((path,), Data(sequence=32, global_batch=8, rows_per_microbatch=8), seed=1)
    assert name in str(raised.value)


def test_a_file_that_shrinks_while_training_is_noticed(tmp_path: Path) -> None:
    batches = batches_of(tmp_path, bytes(range(1, 202)))
    (tmp_path / "text").write_bytes(b"abc")
    with pytest.raises(DataError, match="became shorter"):
        batches.train_rows(range(40))


@pytest.mark.parametrize(
    ("batch", "ranks", "bound", "microbatches", "rows"),
    [
        (16, 1, 16, 1, 16),
        (16, 4, 16, 1, 4),
        (16, 3, 16, 1, 6),
        (16, 3, 4, 2, 3),
        (16, 5, 3, 2, 2),
        (7, 7, 1, 1, 1),
        (11264, 640, 4, 5, 4),
    ],
)
def test_shares_cover_the_batch_and_fit_into_microbatches(
    batch: int, ranks: int, bound: int, microbatches: int, rows: int
) -> None:
    shares = share_out(Data(sequence=8, global_batch=batch, rows_per_microbatch=bound), ranks)
    assert (shares.microbatches, shares.rows) == (microbatches, rows)
    assert [row for rank in range(ranks) for row in shares.of(rank)] == list(range(batch))
    sizes = {len(shares.of(rank)) for rank in range(ranks)}
    assert max(sizes) - min(sizes) <= 1
    assert max(sizes) <= microbatches * rows
    assert rows <= bound
