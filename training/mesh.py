"""The mesh: axes (replica = racks, expert = ranks of a rack), built from the layout, never from JAX's slice index."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from training.config import ConfigError
from training.contract import Layout

RANKS = ("replica", "expert")  # both axes together: every rank


def make_mesh(layout: Layout, devices: Sequence[jax.Device] | None = None) -> Mesh:
    """One device per rank, rack after rack. Raises ConfigError when their numbers differ."""
    found = sorted(jax.devices() if devices is None else devices, key=lambda device: (device.process_index, device.id))
    if len(found) != layout.ranks:
        raise ConfigError(
            f"the layout has {layout.ranks} ranks, but JAX sees {len(found)} devices; each rank needs exactly one"
        )
    return Mesh(np.array(found).reshape(layout.racks, layout.ranks_per_rack), RANKS)


def by_rank(mesh: Mesh) -> NamedSharding:
    """The leading axis counts ranks."""
    return NamedSharding(mesh, PartitionSpec(RANKS))


def everywhere(mesh: Mesh) -> NamedSharding:
    return NamedSharding(mesh, PartitionSpec())
