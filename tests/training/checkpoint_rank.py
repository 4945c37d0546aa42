"""One rank of a gang that saves, run as a program: `python -m tests.training.checkpoint_rank JSON`.

The JSON names everything: rank, ranks, coordinator, root, attempt, restore ([attempt, step] or null), steps, and dies
(the rank that kills itself as soon as the last save has returned, or null). What a rank learns it appends to
ROOT/rank-ATTEMPT-RANK.jsonl.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import jax

from tests.training.checkpoint_states import FINGERPRINT, like, mesh, same_here, state
from training.checkpoint import Checkpointer, restore


def main() -> None:
    given = json.loads(sys.argv[1])
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        given["coordinator"], given["ranks"], given["rank"], heartbeat_timeout_seconds=10, initialization_timeout=60
    )
    log = Path(given["root"], f"rank-{given['attempt']}-{given['rank']}.jsonl")
    log.touch()

    def say(event: dict) -> None:
        with log.open("a") as file:
            file.write(json.dumps(event) + "\n")

    on = mesh(1, given["ranks"])
    parent = given["restore"] and tuple(given["restore"])
    if parent:
        found = restore(Path(given["root"]), *parent, like(on), FINGERPRINT)
        say({"restored": same_here(found, seed=parent[1])})
    saving = Checkpointer(Path(given["root"]), given["attempt"], parent, FINGERPRINT, say)
    train = jax.jit(lambda value: value.sum())
    for step in given["steps"]:
        now = state(on, seed=step)
        saving.save(step, now, tokens=step)
        if step == given["steps"][-1] and given["dies"] == given["rank"]:
            os.kill(os.getpid(), signal.SIGKILL)
        for _ in range(20):  # collectives of training, while the save is in flight
            train(now.weights["experts"]).block_until_ready()
        saving.wait()
    saving.close()
    say({"done": True})


if __name__ == "__main__":
    main()
