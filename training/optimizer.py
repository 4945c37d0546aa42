"""AdamW with clipping, and its learning rate: linear warm-up, then linear decay to a floor."""

from __future__ import annotations

import jax
import optax

from training.config import Optimizer


def learning_rate(optimizer: Optimizer, step: int, total_steps: int) -> float:
    """The rate of update `step` (1 is the first). Reaches the peak at `warmup_steps` and the floor at `total_steps`.

    A pure function of its arguments and an input of the compiled step: a new length needs no new compilation.
    """
    peak, warmup = optimizer.peak_rate, optimizer.warmup_steps
    if step <= warmup:
        return peak * step / warmup
    remaining = max(0, total_steps - step) / max(1, total_steps - warmup)
    return peak * (optimizer.floor_fraction + (1.0 - optimizer.floor_fraction) * remaining)


def make_optimizer(optimizer: Optimizer) -> optax.GradientTransformation:
    """Clip by the global norm, Adam, decoupled weight decay except on norms. Updates still lack the factor -rate."""
    return optax.chain(
        optax.clip_by_global_norm(optimizer.clip_norm),
        optax.scale_by_adam(optimizer.beta1, optimizer.beta2, optimizer.epsilon),
        optax.add_decayed_weights(optimizer.weight_decay, mask=_decayed),
    )


def _decayed(parameters: optax.Params) -> optax.Params:
    return jax.tree_util.tree_map_with_path(lambda path, _: path[-1].name != "norm", parameters)
