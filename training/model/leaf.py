"""One array of the model before it exists: its shape and how it starts.

Values come from a counter-based generator on the host, a stream for each index of the leading axis (layer), or of the
two leading ones (layer, expert): a rank makes the experts that it holds and no others, values do not depend on the
layout, and nothing is compiled for it.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import jax
import numpy as np

from training.config import Model

Array: TypeAlias = Any  # a jax.Array; in trees of another kind a Leaf, a sharding or a partition


@dataclass(frozen=True, slots=True)
class Leaf:
    """Normal values with standard deviation `scale`; None: ones."""

    shape: tuple[int, ...]
    scale: float | None
    is_stacked: bool = False

    def stacked(self, layers: int) -> Leaf:
        return replace(self, shape=(layers, *self.shape), is_stacked=True)

    def materialise(self, seed: int, name: str, sharding: jax.sharding.Sharding) -> jax.Array:
        """A float32 array spread as `sharding` says; a pure function of (seed, name)."""
        return jax.make_array_from_callback(
            self.shape, sharding, lambda index: self._block(seed, zlib.crc32(name.encode()), index)
        )

    def _block(self, seed: int, stream: int, index: tuple[slice, ...]) -> np.ndarray:
        streams = self._streams()
        ranges = [range(*part.indices(size)) for part, size in zip(index, self.shape, strict=True)]
        if self.scale is None:
            return np.ones([len(r) for r in ranges], np.float32)
        block = np.empty([len(r) for r in ranges[:streams]] + list(self.shape[streams:]), np.float32)
        for place in np.ndindex(*block.shape[:streams]):
            key = np.random.SeedSequence([seed, stream, *(ranges[axis][i] for axis, i in enumerate(place))])
            block[place] = self.scale * np.random.Generator(np.random.Philox(key)).standard_normal(
                self.shape[streams:], np.float32
            )
        return block[(..., *index[streams:])]

    def _streams(self) -> int:
        """Leading axes with a stream of their own: what is not one matrix (or vector, or projection to heads)."""
        return (2 if len(self.shape) == 4 else 1) if self.is_stacked else 0


def residual_scale(model: Model) -> float:
    """Residual branches add up over 2 L of them (as in GPT-2)."""
    return (2 * model.layers) ** -0.5
