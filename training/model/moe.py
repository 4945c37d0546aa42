"""One mixture-of-experts block: shared experts that see every token, and the top k of E routed ones.

Scores are sigmoids; a bias per expert, moved toward even load after each step and never by a gradient, takes part in
the choice alone (auxiliary-loss-free balancing, arXiv 2408.15664). Gates are the chosen scores, scaled to sum to one.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from training.config import Model
from training.model.attention import rms_norm
from training.model.dispatch import Dispatcher, Routing, SwiGLU, swiglu
from training.model.leaf import Array, Leaf, residual_scale


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Moe:
    norm: Array  # [D]
    router: Array  # [D, E]
    shared: SwiGLU | None  # F = shared_experts x expert_width; None without shared experts
    experts: SwiGLU  # [E, ...], spread over the ranks of a rack


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Load:
    """What one block saw on this rank."""

    assignments: jax.Array  # float32 [E], wanted by true tokens, dropped ones included
    dropped: jax.Array  # float32 []


def moe_leaves(model: Model) -> Moe:
    """Shapes and initial scales of one layer."""
    shared_width = model.shared_experts * model.expert_width
    return Moe(
        norm=Leaf((model.width,), None),
        router=Leaf((model.width, model.experts), model.width**-0.5),
        shared=_swiglu_leaves(model, (), shared_width) if shared_width else None,
        experts=_swiglu_leaves(model, (model.experts,), model.expert_width),
    )


def _swiglu_leaves(model: Model, lead: tuple[int, ...], width: int) -> SwiGLU:
    return SwiGLU(
        gate=Leaf((*lead, model.width, width), model.width**-0.5),
        up=Leaf((*lead, model.width, width), model.width**-0.5),
        down=Leaf((*lead, width, model.width), width**-0.5 * residual_scale(model)),
    )


def mix(
    parameters: Moe, bias: jax.Array, x: jax.Array, valid: jax.Array, model: Model, dispatcher: Dispatcher
) -> tuple[jax.Array, Load]:
    """Residual update of x, float32 [rows, sequence, D]; `bias` [E]; `valid` bool [rows], false for padding."""
    rows, sequence, width = x.shape
    tokens = rms_norm(x, parameters.norm, model.norm_epsilon).reshape(-1, width)
    routing = route(tokens @ parameters.router, bias, jnp.repeat(valid, sequence), model.experts_per_token)
    y, dropped = dispatcher(parameters.experts, tokens, routing)
    if parameters.shared is not None:
        y = y + swiglu(parameters.shared, tokens)
    return y.reshape(rows, sequence, width), Load(routing.load, dropped)


def route(logits: jax.Array, bias: jax.Array, valid: jax.Array, choices: int) -> Routing:
    """Choose `choices` experts for each of T tokens from logits [T, E]."""
    scores = jax.nn.sigmoid(logits)
    _, experts = jax.lax.top_k(jax.lax.stop_gradient(scores + bias), choices)
    chosen = jnp.take_along_axis(scores, experts, axis=-1)
    gates = chosen / (jnp.sum(chosen, axis=-1, keepdims=True) + 1e-9)
    wanted = jax.nn.one_hot(experts, logits.shape[-1], dtype=jnp.float32) * valid[:, None, None]
    return Routing(experts, gates, valid, jnp.sum(wanted, axis=(0, 1)))
