"""The whole model. Layers are stacked on a leading axis and scanned, so that compiling does not grow with depth."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from training.config import Model
from training.model.attention import Attention, attend, attention_leaves, rms_norm
from training.model.dispatch import Dispatcher
from training.model.leaf import Array, Leaf
from training.model.moe import Load, Moe, mix, moe_leaves


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Layer:
    attention: Attention
    moe: Moe


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Parameters:
    """float32 throughout; V vocabulary, D width, L layers."""

    embedding: Array  # [V, D]
    layers: Layer  # every leaf [L, ...]
    norm: Array  # [D]
    output: Array  # [D, V]


def parameter_leaves(model: Model) -> Parameters:
    """Shapes and initial scales of the whole model."""
    layer = Layer(attention_leaves(model), moe_leaves(model))
    return Parameters(
        embedding=Leaf((model.vocabulary, model.width), 1.0),
        layers=jax.tree.map(lambda leaf: leaf.stacked(model.layers), layer),
        norm=Leaf((model.width,), None),
        output=Leaf((model.width, model.vocabulary), model.width**-0.5),
    )


def loss_sum(
    parameters: Parameters, bias: jax.Array, rows: jax.Array, valid: jax.Array, model: Model, dispatcher: Dispatcher
) -> tuple[jax.Array, Load]:
    """Sum over the true tokens of this rank of -log p(next token), in nats, and each layer's load.

    `bias` float32 [L, E]; `rows` int32 [rows, sequence + 1]; `valid` bool [rows]. Divide by the gang's tokens for the
    mean.
    """
    inputs, targets = rows[:, :-1], rows[:, 1:]

    def block(x: jax.Array, layer: tuple[Layer, jax.Array]) -> tuple[jax.Array, Load]:
        parameters, bias = layer
        x = x + attend(parameters.attention, x, model)
        y, load = mix(parameters.moe, bias, x, valid, model, dispatcher)
        return x + y, load

    x, loads = jax.lax.scan(block, parameters.embedding[inputs], (parameters.layers, bias))
    logits = rms_norm(x, parameters.norm, model.norm_epsilon) @ parameters.output
    nats = jax.nn.logsumexp(logits, axis=-1) - jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return jnp.sum(nats * valid[:, None]), loads
