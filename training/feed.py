"""Turns sample ids into the step's input arrays. A process loads the rows of its own ranks and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import jax
import numpy as np
from jax.sharding import Mesh

from training.inbox import INBOX, checksum_rows, pack_inbox
from training.mesh import by_rank
from training.shares import Shares
from training.step import Batch

RowsById = Callable[[Iterable[int]], np.ndarray]


@dataclass(frozen=True, slots=True)
class Loaded:
    """One rank's rows on the host: [M, R, tokens], [M, R], and their checksum."""

    rows: np.ndarray
    valid: np.ndarray
    checksum: int


class Feed:
    """Global batch b holds the sample ids b x B to b x B + B - 1."""

    def __init__(self, mesh: Mesh, shares: Shares, sequence: int) -> None:
        self._mesh, self._shares, self._tokens = mesh, shares, sequence + 1
        mine = jax.process_index()
        self._ranks = [rank for rank, device in enumerate(mesh.devices.flat) if device.process_index == mine]

    def load(self, rows_by_id: RowsById, index: int) -> dict[int, Loaded]:
        """The rows of global batch `index`, by rank of this process."""
        return {rank: self._load(rows_by_id, index, rank) for rank in self._ranks}

    def _load(self, rows_by_id: RowsById, index: int, rank: int) -> Loaded:
        shares = self._shares
        ids = [index * shares.global_batch + i for i in shares.of(rank)]
        found = rows_by_id(ids)
        padded = shares.microbatches * shares.rows
        rows = np.zeros((padded, self._tokens), np.int32)
        rows[: len(ids)] = found
        valid = np.arange(padded) < len(ids)
        shape = (shares.microbatches, shares.rows)
        return Loaded(rows.reshape(*shape, self._tokens), valid.reshape(shape), checksum_rows(ids, found))

    def batch(self, loaded: dict[int, Loaded], save: bool = False, stop: bool = False) -> Batch:
        """Place loaded rows on this process's devices, with this process's requests in its inbox."""
        return Batch(
            rows=self._place({rank: own.rows for rank, own in loaded.items()}),
            valid=self._place({rank: own.valid for rank, own in loaded.items()}),
            inbox=self._place({rank: pack_inbox(save, stop, own.checksum) for rank, own in loaded.items()}),
        )

    def shapes(self) -> Batch:
        """What `batch` returns, as shapes with shardings."""
        lead = (self._shares.ranks, self._shares.microbatches, self._shares.rows)

        def shape(dims: tuple[int, ...], kind: type[np.generic]) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct(dims, kind, sharding=by_rank(self._mesh))

        rows, valid = shape((*lead, self._tokens), np.int32), shape(lead, np.bool_)
        return Batch(rows, valid, shape((self._shares.ranks, len(INBOX)), np.float32))

    def _place(self, own: dict[int, np.ndarray]) -> jax.Array:
        dims = (self._shares.ranks, *next(iter(own.values())).shape)
        return jax.make_array_from_callback(dims, by_rank(self._mesh), lambda index: own[index[0].start or 0][None])
