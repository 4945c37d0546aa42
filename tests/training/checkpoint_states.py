"""A small training state with every kind of array that a checkpoint must carry, and trees that hold saved steps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from training.checkpoint import Checkpointer

FINGERPRINT = "0123456789abcdef"
ATTEMPT = 3
STEP = 40


@jax.tree_util.register_dataclass
@dataclass
class Small:
    weights: dict[str, Any]
    moments: tuple[Any, ...]
    step: Any


SPECS = Small(
    {"experts": PartitionSpec("expert"), "norm": PartitionSpec()}, (PartitionSpec(None, "expert"),), PartitionSpec()
)


def mesh(replicas: int, experts: int) -> Mesh:
    """Racks and ranks of a rack, on the first of the eight devices."""
    devices = np.array(jax.devices()[: replicas * experts]).reshape(replicas, experts)
    return Mesh(devices, ("replica", "expert"))


def values(seed: int = 0) -> Small:
    """What is saved, as numpy: noise, so that no wrong part looks right."""
    random = np.random.default_rng(seed)
    experts = random.standard_normal((8, 12), np.float32)
    norm = random.standard_normal(16, np.float32).astype(jnp.bfloat16)
    moment = random.standard_normal((6, 16), np.float32)
    return Small({"experts": experts, "norm": norm}, (moment,), np.int32(1_000_003 + seed))


def shardings(on: Mesh) -> Small:
    return jax.tree.map(
        lambda spec: NamedSharding(on, spec), SPECS, is_leaf=lambda leaf: isinstance(leaf, PartitionSpec)
    )


def state(on: Mesh, seed: int = 0) -> Small:
    """`values` on the devices of a mesh; each process gives its own shards."""

    def place(value: np.ndarray, sharding: NamedSharding) -> jax.Array:
        return jax.make_array_from_callback(np.shape(value), sharding, lambda index: np.asarray(value)[index])

    return jax.tree.map(place, values(seed), shardings(on))


def like(on: Mesh) -> Small:
    return jax.tree.map(
        lambda value, sharding: jax.ShapeDtypeStruct(np.shape(value), value.dtype, sharding=sharding),
        values(),
        shardings(on),
    )


def same(found: Small, seed: int = 0) -> bool:
    """Bitwise, as global arrays."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(values(seed)), strict=True)
    return all(np.asarray(one).tobytes() == other.tobytes() and one.dtype == other.dtype for one, other in pairs)


def saved(root: Path, steps: tuple[int, ...] = (STEP,)) -> Path:
    """Save steps of attempt 3, resumed from 2:30, each of another seed; returns the directory of the last one."""
    checkpointer = Checkpointer(root, ATTEMPT, (2, 30), FINGERPRINT, lambda event: None)
    for seed, step in enumerate(steps):
        checkpointer.save(step, state(mesh(2, 2), seed), tokens=1000 * step)
    checkpointer.close()
    return root / "a0003" / str(steps[-1])


def same_here(found: Small, seed: int = 0) -> bool:
    """Bitwise, for the shards of this process."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(values(seed)), strict=True)
    return all(
        np.asarray(shard.data).tobytes() == np.asarray(other)[shard.index].tobytes()
        for one, other in pairs
        for shard in one.addressable_shards
    )
