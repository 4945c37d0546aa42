"""Checkpoints of the trainer: saved in the background by Orbax, sealed by a manifest that is written last.

On disk: ROOT/aNNNN/STEP/state/... (Orbax, zarr3) and ROOT/aNNNN/STEP/manifest.json. What decides when to save, which
step to resume from, or what to delete does not live here. Nothing here remembers what is on disk: it looks.
"""

from training.checkpoint.checkpointer import Checkpointer
from training.checkpoint.refusal import CheckpointDamaged, CheckpointForeign
from training.checkpoint.restoration import restore
from training.checkpoint.verification import verify

__all__ = ["CheckpointDamaged", "CheckpointForeign", "Checkpointer", "restore", "verify"]
