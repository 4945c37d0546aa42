"""Whatever happens to the files of a checkpoint is noticed, and no restore returns wrong data."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.training.checkpoint_states import ATTEMPT, FINGERPRINT, STEP, like, mesh, same, saved
from training.checkpoint import CheckpointDamaged, CheckpointForeign, restore, verify
from training.checkpoint.manifest import digest

PLACES = 300
TRUNCATIONS = 3  # of each file: emptied, the last byte gone, and one place in between


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One saved step, shared: every test here leaves it as it was, or takes a copy."""
    return saved(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture
def copy(step: Path, tmp_path: Path) -> Path:
    shutil.copytree(step.parent.parent, tmp_path / "tree")
    return tmp_path / "tree" / "a0003" / str(STEP)


def read(directory: Path, fingerprint: str = FINGERPRINT) -> object:
    return restore(directory.parent.parent, ATTEMPT, STEP, like(mesh(2, 2)), fingerprint)


def files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def damages(directory: Path, flips_of: Callable[[Path, int], Iterator[int]]) -> Iterator[tuple[str, Path, bytes]]:
    """(what was done, the file, its damaged content)."""
    chance = random.Random(7)
    for path in files(directory):
        whole = path.read_bytes()
        for length in {0, len(whole) - 1, chance.randrange(len(whole))}:
            yield f"truncated to {length} bytes", path, whole[:length]
        for offset in flips_of(path, len(whole)):
            damaged = bytearray(whole)
            damaged[offset] ^= 1 << chance.randrange(8)
            yield f"one bit flipped at byte {offset}", path, bytes(damaged)


def unnoticed(directory: Path, flips_of: Callable[[Path, int], Iterator[int]]) -> tuple[int, list[str]]:
    """How many places were damaged, one after the other, and which of them a restore did not refuse."""
    missed, places = [], 0
    for what, path, damaged in damages(directory, flips_of):
        whole = path.read_bytes()
        path.write_bytes(damaged)
        places += 1
        try:
            found = read(directory)
        except CheckpointDamaged:
            pass  # noticed
        else:
            missed.append(
                f"{path.relative_to(directory)}: {what} ({'data still right' if same(found) else 'WRONG DATA'})"
            )
        path.write_bytes(whole)
    return places, missed


def test_a_bit_flipped_or_bytes_lost_anywhere_are_noticed(step: Path) -> None:
    each = PLACES // len(files(step)) + 1

    def flips(path: Path, size: int) -> Iterator[int]:
        yield from sorted({0, size - 1, *(place * size // each for place in range(each))})

    places, missed = unnoticed(step, flips)
    assert places >= PLACES
    assert missed == []
    assert same(read(step)), "the control, undamaged, must restore bitwise"


@pytest.mark.long
def test_a_bit_flipped_at_every_byte_of_every_file_is_noticed(step: Path) -> None:
    places, missed = unnoticed(step, lambda path, size: iter(range(size)))
    assert places > 3000
    assert missed == []
    assert same(read(step))


@pytest.mark.parametrize("kind", ["manifest.json", "_METADATA", "zarr.json", "chunk"])
def test_a_deleted_file_is_noticed(copy: Path, kind: str) -> None:
    victims = [
        path
        for path in files(copy)
        if path.name == kind or (kind == "chunk" and path.parent.name == "step" and path.name == "c")
    ]
    victims[0].unlink()
    with pytest.raises(CheckpointDamaged) as caught:
        read(copy)
    assert (caught.value.attempt, caught.value.step) == (ATTEMPT, STEP)
    assert (
        "was never finished" if kind == "manifest.json" else f"{victims[0].relative_to(copy)} is missing"
    ) in caught.value.reason


def test_a_link_in_place_of_a_file_is_noticed(copy: Path, tmp_path: Path) -> None:
    chunk = copy / "state" / "step" / "c"
    chunk.rename(tmp_path / "elsewhere")
    chunk.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointDamaged, match="state/step/c is missing"):
        read(copy)


def test_a_step_that_is_not_there_was_never_finished(step: Path) -> None:
    with pytest.raises(CheckpointDamaged, match="never finished"):
        verify(step.parent.parent, ATTEMPT, STEP + 1)


def test_a_manifest_of_another_step_is_refused(tmp_path: Path) -> None:
    newer = saved(tmp_path, (30, STEP))
    shutil.copy(newer.parent / "30" / "manifest.json", newer / "manifest.json")
    with pytest.raises(CheckpointDamaged, match="that of another checkpoint, 3:30"):
        verify(tmp_path, ATTEMPT, STEP)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "truncated or not JSON"),
        (b"[" * 100_000, "truncated or not JSON"),
        (b"\xff\xfe", "truncated or not JSON"),
        (b"{}", "does not have the members"),
        (b"[1]", "does not have the members"),
    ],
)
def test_garbage_in_place_of_the_manifest_is_refused_in_words(copy: Path, text: bytes, reason: str) -> None:
    (copy / "manifest.json").write_bytes(text)
    with pytest.raises(CheckpointDamaged, match=reason):
        read(copy)


@pytest.mark.parametrize(
    ("member", "value", "reason"),
    [
        ("step", 41, "that of another checkpoint"),
        ("attempt", True, "of the wrong kind"),
        ("parent", "two", "has a parent"),
        ("version", 2, "a version"),
        ("files", [], "must list between"),
        ("files", [{"path": "../../secret", "bytes": 1}], "a bad path"),
        ("files", [{"path": "/etc/hostname", "bytes": 1}], "a bad path"),
        ("files", [{"path": "state/_METADATA", "bytes": 1, "sha256": "00"}], "a bad hash"),
    ],
)
def test_a_manifest_with_a_right_digest_is_still_checked(copy: Path, member: str, value: object, reason: str) -> None:
    rewrite(copy, lambda members: members.update({member: value}))
    with pytest.raises(CheckpointDamaged, match=reason):
        read(copy)


def test_a_manifest_too_large_to_be_one_is_not_read(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.checkpoint.manifest.MANIFEST_BYTES_MAX", (copy / "manifest.json").stat().st_size - 1)
    with pytest.raises(CheckpointDamaged, match="larger than"):
        read(copy)


def test_a_metadata_file_without_a_hash_is_refused(copy: Path) -> None:
    rewrite(copy, lambda members: members["files"][0].update(sha256=None))
    with pytest.raises(CheckpointDamaged, match="no hash"):
        read(copy)


def test_an_array_sealed_without_chunk_checksums_is_refused(copy: Path) -> None:
    """Another program may write such a manifest; damage to these chunks could not be noticed."""
    path = copy / "state" / "step" / "zarr.json"
    text = path.read_text().replace(',{"name":"crc32c"}]', "]", 1)
    path.write_text(text)
    from hashlib import sha256

    def reseal(members: dict) -> None:
        entry = next(file for file in members["files"] if file["path"] == "state/step/zarr.json")
        entry.update(bytes=len(text), sha256=sha256(text.encode()).hexdigest())

    rewrite(copy, reseal)
    with pytest.raises(CheckpointDamaged, match="without checksums"):
        read(copy)


def test_a_file_that_a_reader_could_take_for_data_is_refused_and_one_beside_it_is_not(copy: Path) -> None:
    stale = copy / "state.orbax-checkpoint-tmp"
    stale.mkdir()
    (stale / "_METADATA").write_text("{}")
    (copy / "manifest.json.unfinished").write_text("{")
    assert same(read(copy))
    (copy / "state" / "step" / "c2").write_bytes(b"x")
    with pytest.raises(CheckpointDamaged, match="state/step/c2 is not in its manifest"):
        read(copy)


def test_a_checkpoint_of_another_model_is_foreign_and_not_damaged(step: Path) -> None:
    with pytest.raises(CheckpointForeign, match="saved by model '0123456789abcdef'"):
        read(step, fingerprint="another")


def test_arrays_that_differ_are_foreign_instead_of_cast_or_cut(step: Path) -> None:
    import jax
    import jax.numpy as jnp

    root = step.parent.parent
    cut, cast, more = like(mesh(2, 2)), like(mesh(2, 2)), like(mesh(2, 2))
    where = cut.step.sharding
    cut.weights["norm"] = jax.ShapeDtypeStruct((8,), jnp.bfloat16, sharding=where)
    cast.weights["norm"] = jax.ShapeDtypeStruct((16,), jnp.float32, sharding=where)
    more.weights["bias"] = jax.ShapeDtypeStruct((16,), jnp.float32, sharding=where)
    for wanted, reason in (
        (cut, r"bfloat16\[16\] in it"),
        (cast, r"float32\[16\] in this"),
        (more, "weights.bias is in this"),
    ):
        with pytest.raises(CheckpointForeign, match=reason):
            restore(root, ATTEMPT, STEP, wanted, FINGERPRINT)


def rewrite(directory: Path, change: Callable[[dict], None]) -> None:
    """Change the manifest and give it the digest that belongs to it."""
    path = directory / "manifest.json"
    members = json.loads(path.read_text())
    change(members)
    del members["digest"]
    path.write_text(json.dumps(members | {"digest": digest(members)}))
