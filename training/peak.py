"""The peak of a device where none is published: the best of a few timed matrix products."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp

MAX_BYTES = 64
SIZE = 384  # large enough to be bound by arithmetic on a CPU core, small enough to take milliseconds
ROUNDS = 12


def peak_of_run(cache: Path | None, ranks: int) -> float:
    """FLOP/s of one device, measured once for each number of ranks and kept in `cache`: utilisation of one attempt
    can then be compared with that of another. Without a cache it is measured anew.
    """
    if cache is None:
        return measure_peak()
    path = cache / f"measured-peak-{ranks}-ranks"
    kept = _read(path)
    if kept is not None:
        return kept
    peak = measure_peak()
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(repr(peak))
        unfinished.replace(path)
    except OSError as error:
        print(f"the measured peak is not kept ({error}); the next attempt measures anew", file=sys.stderr, flush=True)
    return peak


def _read(path: Path) -> float | None:
    try:
        with path.open() as file:
            value = float(file.read(MAX_BYTES))
    except (OSError, ValueError):  # none yet, or damaged: measured anew either way
        return None
    return value if 0 < value < float("inf") else None


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
