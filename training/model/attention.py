"""Causal grouped-query attention with rotary positions."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from training.config import Model
from training.model.leaf import Array, Leaf, residual_scale


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Attention:
    """D width, H heads, K key-value heads, Q head width."""

    norm: Array  # [D]
    query: Array  # [D, H, Q]
    key: Array  # [D, K, Q]
    value: Array  # [D, K, Q]
    output: Array  # [H, Q, D]


def attention_leaves(model: Model) -> Attention:
    """Shapes and initial scales of one layer."""
    width, heads, groups, head = model.width, model.heads, model.key_value_heads, model.head_width
    return Attention(
        norm=Leaf((width,), None),
        query=Leaf((width, heads, head), width**-0.5),
        key=Leaf((width, groups, head), width**-0.5),
        value=Leaf((width, groups, head), width**-0.5),
        output=Leaf((heads, head, width), (heads * head) ** -0.5 * residual_scale(model)),
    )


def attend(parameters: Attention, x: jax.Array, model: Model) -> jax.Array:
    """Residual update of x, float32 [rows, sequence, D]."""
    rows, sequence, _ = x.shape
    groups, shared = model.key_value_heads, model.heads // model.key_value_heads
    normed = rms_norm(x, parameters.norm, model.norm_epsilon)
    query = rotate(jnp.einsum("bsd,dhq->bshq", normed, parameters.query), model.rope_base)
    key = rotate(jnp.einsum("bsd,dkq->bskq", normed, parameters.key), model.rope_base)
    value = jnp.einsum("bsd,dkq->bskq", normed, parameters.value)
    query = query.reshape(rows, sequence, groups, shared, model.head_width)
    scores = jnp.einsum("bskgq,btkq->bkgst", query, key) * model.head_width**-0.5
    causal = jnp.tril(jnp.ones((sequence, sequence), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf), axis=-1)
    mixed = jnp.einsum("bkgst,btkq->bskgq", weights, value)
    return jnp.einsum("bshq,hqd->bsd", mixed.reshape(rows, sequence, model.heads, model.head_width), parameters.output)


def rms_norm(x: jax.Array, scale: jax.Array, epsilon: float) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + epsilon) * scale


def rotate(x: jax.Array, base: float) -> jax.Array:
    """Rotary positions (RoFormer, arXiv 2104.09864) on [rows, sequence, heads, Q]; pairs are (i, i + Q/2)."""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] * base ** (-jnp.arange(half) / half)
    cos, sin = jnp.cos(angles)[:, None, :], jnp.sin(angles)[:, None, :]
    first, second = x[..., :half], x[..., half:]
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
