"""Reading a step back, onto any mesh: verified first, and every chunk checked as it is read.

Orbax's files are plain zarr3, so TensorStore reads them here without Orbax: Orbax 0.12.8 casts dtypes in silence, and
on a damaged chunk raises a bare Exception and prints one traceback for each array that was still being read.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tensorstore

from training.checkpoint import storage_error
from training.checkpoint.manifest import step_directory
from training.checkpoint.naming import by_name, like_tree
from training.checkpoint.refusal import CheckpointDamaged, CheckpointForeign
from training.checkpoint.step_files import STATE
from training.checkpoint.verification import Verified, verified

ARRAYS_AT_ONCE = 32  # bounds host memory beyond the state's own to this many shards


def restore(root: Path, attempt: int, step: int, like: Any, fingerprint: str) -> Any:
    """The state of a step, in the structure, shapes, dtypes and shardings of `like`, a pytree of jax.ShapeDtypeStruct.

    Every rank calls it; no barrier and no collective is involved. How the state was sharded when it was saved does not
    matter.
    Raises CheckpointDamaged, CheckpointForeign (another fingerprint, or arrays that `like` does not have), OSError.
    """
    found = verified(root, attempt, step)
    wanted = by_name(like)
    _require_ours(found, wanted, fingerprint)
    directory = step_directory(root, attempt, step).resolve() / STATE
    results = asyncio.run(_read_all(directory, wanted))
    failed = {name: result for name, result in results.items() if isinstance(result, BaseException)}
    for name, error in failed.items():
        raise _explained(attempt, step, name, error) from error
    return like_tree(results, like)


def _require_ours(found: Verified, wanted: dict[str, jax.ShapeDtypeStruct], fingerprint: str) -> None:
    attempt, step = found.manifest.attempt, found.manifest.step
    if found.manifest.model != fingerprint:
        raise CheckpointForeign(
            attempt,
            step,
            f"it was saved by model {found.manifest.model[:80]!r}; the configuration describes {fingerprint[:80]!r}",
        )
    differing = sorted(wanted.keys() ^ found.arrays.keys())
    if differing:
        where = "this program" if differing[0] in wanted else "the checkpoint"
        raise CheckpointForeign(attempt, step, f"its arrays are not this program's: {differing[0]} is in {where} alone")
    for name, leaf in wanted.items():
        saved, ours = found.arrays[name], (leaf.shape, leaf.dtype.name)
        if (saved.shape, saved.dtype) != ours:
            raise CheckpointForeign(
                attempt,
                step,
                f"{name} is {saved.dtype}{list(saved.shape)} in it, but {ours[1]}{list(ours[0])} in this program",
            )


async def _read_all(directory: Path, wanted: dict[str, jax.ShapeDtypeStruct]) -> dict[str, jax.Array | BaseException]:
    context = tensorstore.Context()
    slots = asyncio.Semaphore(ARRAYS_AT_ONCE)

    async def read(name: str, leaf: jax.ShapeDtypeStruct) -> jax.Array:
        async with slots:
            return await _read(directory / name, leaf, context)

    results = await asyncio.gather(*(read(*item) for item in wanted.items()), return_exceptions=True)
    return dict(zip(wanted, results, strict=True))


async def _read(directory: Path, leaf: jax.ShapeDtypeStruct, context: tensorstore.Context) -> jax.Array:
    """This process's shards of one array; a part that several devices hold is read once."""
    if leaf.sharding is None:
        raise ValueError("every leaf of `like` needs a sharding: the saved one is never used")
    store = await tensorstore.open(
        {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{directory}/"}, "fill_missing_data_reads": False},
        open=True,
        read=True,
        context=context,
    )
    where = leaf.sharding.addressable_devices_indices_map(leaf.shape)
    regions = {_corners(index, leaf.shape): index for index in where.values()}
    parts = await asyncio.gather(*(store[index].read() for index in regions.values()))
    values = dict(zip(regions, (np.asarray(part) for part in parts), strict=True))
    return jax.make_array_from_callback(leaf.shape, leaf.sharding, lambda index: values[_corners(index, leaf.shape)])


def _corners(index: tuple[slice, ...] | None, shape: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
    """Slices are no keys of a dictionary before Python 3.12."""
    return tuple(part.indices(size) for part, size in zip(index or (), shape, strict=True))


def _explained(attempt: int, step: int, name: str, error: BaseException) -> BaseException:
    """What TensorStore cannot find or decode is damage; a refusal of the system is not, and a bug stays itself."""
    if storage_error.refused(error):
        return OSError(f"checkpoint {attempt}:{step} cannot be read: {storage_error.detail(error)}")
    if storage_error.from_tensorstore(error):
        return CheckpointDamaged(attempt, step, f"a chunk of {name} is damaged: {storage_error.detail(error)}")
    return error
