"""Saving in the background, sealing with a manifest, and reading back onto other meshes."""

from __future__ import annotations

import json
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jsonschema
import numpy as np
import pytest

from tests.training.checkpoint_states import ATTEMPT, FINGERPRINT, STEP, like, mesh, same, saved, state, values
from training.checkpoint import CheckpointDamaged, Checkpointer, checkpointer, chunk_codec, restore, verify

SCHEMA = json.loads((Path(__file__).parents[2] / "supervisor" / "wire" / "schema" / "trainer-v1.json").read_text())


def against_schema(value: Any, definition: str) -> None:
    jsonschema.validate(value, {"$ref": f"#/$defs/{definition}", "$defs": SCHEMA["$defs"]})


def checkpointer_at(root: Path, events: list[dict]) -> Checkpointer:
    return Checkpointer(root, ATTEMPT, None, FINGERPRINT, events.append)


@pytest.mark.parametrize("shape", [(1, 2), (2, 2), (1, 4), (4, 2), (1, 1)], ids=str)
def test_a_state_saved_on_two_racks_restores_bitwise_onto_any_mesh(tmp_path: Path, shape: tuple[int, int]) -> None:
    saved(tmp_path)
    on = mesh(*shape)
    found = restore(tmp_path, ATTEMPT, STEP, like(on), FINGERPRINT)
    assert same(found)
    assert found.weights["experts"].sharding == like(on).weights["experts"].sharding


def test_racks_share_the_writing_of_a_large_shard_and_it_restores_bitwise(tmp_path: Path) -> None:
    on = mesh(2, 2)
    large = np.random.default_rng(1).standard_normal((4, 1 << 19), np.float32)  # 4 MiB a shard
    sharding = jax.sharding.NamedSharding(on, jax.sharding.PartitionSpec("expert"))
    saving = checkpointer_at(tmp_path, [])
    saving.save(1, {"large": jax.device_put(large, sharding)}, 0)
    saving.close()
    one = mesh(1, 2)
    wanted = {
        "large": jax.ShapeDtypeStruct(large.shape, large.dtype, sharding=jax.sharding.NamedSharding(one, sharding.spec))
    }
    assert (
        len([path for path in (tmp_path / "a0003" / "1" / "state" / "large" / "c").rglob("*") if path.is_file()]) == 4
    )
    found = restore(tmp_path, ATTEMPT, 1, wanted, FINGERPRINT)
    assert np.asarray(found["large"]).tobytes() == large.tobytes()


def test_the_manifest_and_the_events_keep_to_the_contract(tmp_path: Path) -> None:
    events: list[dict] = []
    with_parent = Checkpointer(tmp_path, ATTEMPT, (2, 30), FINGERPRINT, events.append)
    with_parent.save(STEP, state(mesh(2, 2)), tokens=123)
    with_parent.close()
    manifest = json.loads((tmp_path / "a0003" / "40" / "manifest.json").read_text())
    against_schema(manifest, "manifest")
    assert (manifest["attempt"], manifest["step"], manifest["parent"], manifest["tokens"]) == (3, 40, "2:30", 123)
    for event in events:
        against_schema(event, "event")
    assert [event["state"] for event in events] == ["started", "committed"]
    assert events[1]["bytes"] == sum(file["bytes"] for file in manifest["files"])
    listed = {file["path"] for file in manifest["files"]}
    there = {
        path.relative_to(tmp_path / "a0003" / "40").as_posix()
        for path in (tmp_path / "a0003" / "40").rglob("*")
        if path.is_file()
    }
    assert there - listed == {"manifest.json"}
    assert {file["path"] for file in manifest["files"] if file.get("sha256") is None} == {
        path for path in listed if path.endswith("/c") or "/c/" in path
    }


def test_save_returns_before_the_commit_and_the_manifest_comes_after_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, may_seal = threading.Event(), threading.Event()
    seal = checkpointer.seal

    def held(*args: Any) -> int:
        written.set()
        assert may_seal.wait(30)
        return seal(*args)

    monkeypatch.setattr(checkpointer, "seal", held)
    events: list[dict] = []
    saving = checkpointer_at(tmp_path, events)
    saving.save(STEP, state(mesh(2, 2)), 0)
    assert written.wait(30)
    assert [event["state"] for event in events] == ["started"]
    assert (tmp_path / "a0003" / "40" / "state" / "_METADATA").exists()
    with pytest.raises(CheckpointDamaged, match="never finished"):
        restore(tmp_path, ATTEMPT, STEP, like(mesh(2, 2)), FINGERPRINT)
    may_seal.set()
    saving.wait()
    assert [event["state"] for event in events] == ["started", "committed"]
    assert same(restore(tmp_path, ATTEMPT, STEP, like(mesh(2, 2)), FINGERPRINT))


def test_two_saves_never_overlap(tmp_path: Path) -> None:
    events: list[dict] = []
    saving = checkpointer_at(tmp_path, events)
    for step in (1, 2, 3):
        saving.save(step, state(mesh(2, 2), seed=step), 0)
    saving.close()
    assert [(event["step"], event["state"]) for event in events] == [
        (step, what) for step in (1, 2, 3) for what in ("started", "committed")
    ]
    for step in (1, 2, 3):
        assert same(restore(tmp_path, ATTEMPT, step, like(mesh(2, 2)), FINGERPRINT), seed=step)


def test_what_is_saved_is_the_state_at_the_call_although_training_reuses_its_memory(tmp_path: Path) -> None:
    on = mesh(2, 2)
    now = state(on)
    advance = jax.jit(lambda tree: jax.tree.map(lambda leaf: leaf * 0 - 1, tree), donate_argnums=0)
    saving = checkpointer_at(tmp_path, [])
    saving.save(STEP, now, 0)
    jax.block_until_ready(advance(now))
    saving.close()
    assert same(restore(tmp_path, ATTEMPT, STEP, like(on), FINGERPRINT))


def test_training_may_reuse_the_memory_of_a_restored_state(tmp_path: Path) -> None:
    """Racks hold the same values; were they one buffer on the host, each would add to what another has written."""
    saved(tmp_path)
    found = restore(tmp_path, ATTEMPT, STEP, like(mesh(4, 2)), FINGERPRINT)
    following = jax.jit(lambda leaf: leaf + 1, donate_argnums=0)(found.step)
    assert {int(shard.data) for shard in following.addressable_shards} == {int(values().step) + 1}
    large = jax.jit(lambda leaf: leaf + 1, donate_argnums=0)(found.weights["experts"])
    for shard in large.addressable_shards:
        assert np.array_equal(shard.data, values().weights["experts"][shard.index] + 1)


def test_a_place_that_cannot_be_written_is_an_oserror_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a0003").write_text("in the way")
    events: list[dict] = []
    with pytest.raises(OSError, match=r"step 40 could not be saved to .*a0003/40: .*Check the space"):
        checkpointer_at(tmp_path, events).save(STEP, state(mesh(2, 2)), 0)
    assert events[-1]["state"] == "failed"
    assert "could not be saved" in events[-1]["message"]
    against_schema(events[-1], "event")


def test_storage_that_fails_in_the_background_is_raised_by_the_next_call(tmp_path: Path) -> None:
    events: list[dict] = []
    saving = checkpointer_at(tmp_path, events)
    on = mesh(1, 2)
    noise = {"noise": jax.device_put(jnp.asarray(np.random.default_rng(0).standard_normal((4, 1 << 20), np.float32)))}
    with files_limited_to(1 << 20):
        saving.save(7, noise, 0)
        with pytest.raises(OSError, match=r"step 7 could not be saved .*File too large"):
            saving.save(8, noise, 0)
    assert [(event["step"], event["state"]) for event in events] == [(7, "started"), (7, "failed")]
    with pytest.raises(CheckpointDamaged, match="never finished"):
        verify(tmp_path, ATTEMPT, 7)
    saving.save(9, state(on), 0)
    saving.close()
    assert same(restore(tmp_path, ATTEMPT, 9, like(on), FINGERPRINT))


def test_every_array_on_disk_carries_a_checksum_in_each_chunk_scalars_too(tmp_path: Path) -> None:
    """Fails loudly when a new version of Orbax builds its metadata elsewhere (training/checkpoint/chunk_codec.py)."""
    directory = saved(tmp_path) / "state"
    found = {path.parent.name: json.loads(path.read_text()) for path in directory.glob("*/zarr.json")}
    assert set(found) == {"weights.experts", "weights.norm", "moments.0", "step"}
    for name, metadata in found.items():
        (sharding,) = metadata["codecs"]
        assert sharding["name"] == "sharding_indexed", name
        assert sharding["configuration"]["codecs"][-1]["name"] == "crc32c", name
        assert sharding["configuration"]["index_codecs"][-1]["name"] == "crc32c", name
    assert found["weights.experts"]["chunk_grid"]["configuration"]["chunk_shape"] == [4, 12], (
        "chunks have the shape of a shard"
    )


def test_a_save_without_checksums_never_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from orbax.checkpoint._src.serialization import tensorstore_utils

    events: list[dict] = []
    saving = checkpointer_at(tmp_path, events)
    monkeypatch.setattr(tensorstore_utils, "_build_zarr3_metadata", tensorstore_utils._build_zarr3_metadata.__wrapped__)
    monkeypatch.setattr(chunk_codec, "install", lambda: None)
    saving.save(STEP, state(mesh(2, 2)), 0)
    with pytest.raises(chunk_codec.ChecksumMissing, match="no crc32c"):
        saving.wait()
    assert events[-1]["state"] == "failed"
    assert not (tmp_path / "a0003" / "40" / "manifest.json").exists()


def test_an_orbax_without_the_known_place_is_refused_before_anything_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from orbax.checkpoint._src.serialization import tensorstore_utils

    monkeypatch.delattr(tensorstore_utils, "_build_zarr3_metadata")
    with pytest.raises(chunk_codec.ChecksumMissing, match="constraints file"):
        checkpointer_at(tmp_path, [])


def test_orbax_alone_can_read_what_was_saved(tmp_path: Path) -> None:
    import orbax.checkpoint as ocp

    directory = saved(tmp_path) / "state"
    wanted = like(mesh(1, 2)).weights["experts"]
    target = {"weights.experts": wanted}
    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as plain:
        found = plain.restore(
            directory,
            args=ocp.args.PyTreeRestore(
                item=target, restore_args=ocp.checkpoint_utils.construct_restore_args(target), partial_restore=True
            ),
        )
    ours = restore(tmp_path, ATTEMPT, STEP, like(mesh(1, 2)), FINGERPRINT)
    assert np.array_equal(found["weights.experts"], ours.weights["experts"])


@pytest.mark.parametrize("tree", [{"a/b": 0}, {"a": {"b": 0}, "a.b": 0}, {}], ids=["slash", "twice", "empty"])
def test_a_state_whose_leaves_have_no_name_of_their_own_is_refused(tmp_path: Path, tree: dict) -> None:
    arrays = jax.tree.map(lambda _: jnp.zeros(2), tree)
    with pytest.raises(ValueError, match="the state has"):
        checkpointer_at(tmp_path, []).save(1, arrays, 0)


@contextmanager
def files_limited_to(size: int) -> Iterator[None]:
    """No file of this process can grow beyond `size` bytes: a full disk that needs no disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
