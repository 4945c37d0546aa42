"""A trainer of somebody else's: JAX and the contract, nothing of ours. It fits a line by gradient descent.

It knows six things of the contract: the argument-less `jax.distributed.initialize`, MARIN_SUP_EVENTS, _RESUME,
_ATTEMPT, _CHECKPOINTS and the exit codes. It writes no manifest, so its checkpoints are taken at its word.
"""

import json
import os
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

STEPS = int(sys.argv[1])
SAVE_EVERY = 5

jax.config.update("jax_cpu_collectives_implementation", "gloo")
events = open(os.environ["MARIN_SUP_EVENTS"], "a", buffering=1)  # noqa: SIM115


def tell(event, **members):
    events.write(json.dumps({"event": event, "time": time.time(), **members}) + "\n")


tell("phase", phase="init")
jax.distributed.initialize()
rank, attempt = jax.process_index(), int(os.environ["MARIN_SUP_ATTEMPT"])
folder = Path(os.environ["MARIN_SUP_CHECKPOINTS"])
tell(
    "hello",
    contract=1,
    tokensPerStep=64,
    flopsPerStep=1e3,
    peakFlopsPerDevice=None,
    devices=jax.device_count(),
    parameters=2,
    totalSteps=STEPS,
)

weights, start = np.zeros(2, np.float32), 0
if os.environ["MARIN_SUP_RESUME"] != "none":
    tell("phase", phase="restore")
    source, start = map(int, os.environ["MARIN_SUP_RESUME"].split(":"))
    weights = np.load(folder / f"line-{source}-{start}.npy")

mesh = Mesh(np.array(jax.devices()), ("rank",))
rows = NamedSharding(mesh, PartitionSpec("rank"))
x = np.linspace(-1, 1, 64, dtype=np.float32)
batch = jax.make_array_from_callback((64,), rows, lambda index: x[index])


@jax.jit
def update(w, x):
    loss, slope = jax.value_and_grad(lambda w: jnp.mean((w[0] * x + w[1] - (3 * x + 1)) ** 2))(w)
    return w - 0.1 * slope, loss


weights = jax.device_put(weights, NamedSharding(mesh, PartitionSpec()))
tell("phase", phase="compile")
for step in range(start + 1, STEPS + 1):
    weights, loss = update(weights, batch)
    tell("step", step=step, state="entered")
    loss = float(loss)
    if step == start + 1:
        tell("phase", phase="train")
    tell("step", step=step, state="completed", tokens=64, loss=loss)
    time.sleep(0.03)  # a step takes a moment, so that there is something to kill
    if step % SAVE_EVERY == 0 and rank == 0:
        temporary = folder / f"line-{attempt}-{step}.new.npy"
        folder.mkdir(parents=True, exist_ok=True)
        np.save(temporary, np.asarray(weights))
        temporary.rename(folder / f"line-{attempt}-{step}.npy")
        tell("checkpoint", state="committed", attempt=attempt, step=step)
multihost_utils.sync_global_devices("done")
tell("phase", phase="exit", reason="all steps done")
