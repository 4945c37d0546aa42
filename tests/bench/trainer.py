"""The trainer that ours and the plain script both run."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
ARGUMENTS = ("--config", str(Path(__file__).with_name("trainer.yaml")))
ENVIRONMENT = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
SAVE_EVERY = 5  # steps
