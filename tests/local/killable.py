"""The run that is killed in many ways and compared with itself: the tiny model on two racks of one rank each."""

from __future__ import annotations

from tests.local.run_process import ONE_THREAD, RunProcess, environment, manifest

STEPS = 120
SEQUENCES = 8  # global batch of the tiny model


def killable(name: str = "killable", *settings: str) -> dict:
    chosen = [argument for setting in (f"steps={STEPS}", *settings) for argument in ("--set", setting)]
    trainer = {
        "module": "training.train",
        "args": ["--config", "tiny", *chosen],
        "preload": ["jax", "orbax.checkpoint"],
        "env": environment(ONE_THREAD),
    }
    return manifest(name, racks=2, nodes=1, ranks=1, trainer=trainer)


def every_sample_is_used_exactly_once(run: RunProcess) -> None:
    used: list[int] = []
    for event in run.lineage_steps().values():
        first, count = int(event["metrics"]["sampleFirst"]), int(event["metrics"]["sampleCount"])
        used.extend(range(first, first + count))
    assert sorted(used) == list(range(STEPS * SEQUENCES))
