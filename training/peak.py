"""The peak of a device where none is published: the best of a few timed matrix products."""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp

SIZE = 384  # large enough to be bound by arithmetic on a CPU core, small enough to take milliseconds
ROUNDS = 12


def measure_peak() -> float:
    """FLOP/s of this process's device in float32: 2 n^3 / best time. All ranks measure at once, so those that share
    cores report what they can get together.
    """
    device = jax.local_devices()[0]
    x = jax.device_put(jnp.full((SIZE, SIZE), 1.0 / SIZE, jnp.float32), device)
    product = jax.jit(lambda a: a @ a).lower(x).compile()
    product(x).block_until_ready()
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        product(x).block_until_ready()
        best = min(best, time.perf_counter() - start)
    return 2.0 * SIZE**3 / best
