"""Memory on disk: whatever happens to the file, a whole memory is read or the loss is said."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor.core.decide import first_memory
from supervisor.core.memory import VERSION, Memory
from supervisor.local.memory_store import MemoryStore, NewerMemory


def memory(revision: int) -> Memory:
    return replace(first_memory(1_000), revision=revision)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.json"


def test_what_was_saved_is_loaded(path: Path) -> None:
    MemoryStore(path).save(memory(7))
    assert MemoryStore(path).load().memory == memory(7)
    assert MemoryStore(path).load().loss == ""


def test_a_run_without_memory_begins_anew_and_nothing_was_lost(path: Path) -> None:
    assert MemoryStore(path).load().memory is None
    assert MemoryStore(path).load().loss == ""


@pytest.mark.parametrize("keep", [0, 1, 64, 65, 66, 200])
def test_a_memory_cut_off_anywhere_is_noticed_and_the_one_before_is_used(path: Path, keep: int) -> None:
    store = MemoryStore(path)
    store.save(memory(1))
    store.save(memory(2))
    path.write_bytes(path.read_bytes()[:keep])
    loaded = store.load()
    assert loaded.memory == memory(1)
    assert "memory.json is damaged" in loaded.loss
    assert "revision 1" in loaded.loss


def test_every_flipped_bit_is_noticed(path: Path) -> None:
    store = MemoryStore(path)
    store.save(memory(1))
    store.save(memory(2))
    whole = path.read_bytes()
    for position in range(0, len(whole), 7):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x10]) + whole[position + 1 :])
        assert store.load().memory == memory(1), f"byte {position}"


def test_with_both_damaged_the_loss_is_said(path: Path) -> None:
    store = MemoryStore(path)
    store.save(memory(1))
    store.save(memory(2))
    path.write_bytes(b"x")
    path.with_suffix(".previous.json").write_bytes(b"")
    loaded = store.load()
    assert loaded.memory is None
    assert "memory.json" in loaded.loss
    assert "memory.previous.json" in loaded.loss


def test_a_memory_of_a_newer_version_is_not_acted_upon(path: Path) -> None:
    body = json.dumps({"version": VERSION + 1, "a field of tomorrow": []}).encode()
    path.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    with pytest.raises(NewerMemory, match="newer marin-sup"):
        MemoryStore(path).load()
