"""Bringing tokens to their experts, which are spread over the ranks of a rack. Runs inside `jax.shard_map`.

`all_to_all`: every source rank has C = ceil(capacity_factor x T x k / E) slots per expert. Assignments take slots in
the order of their tokens; those beyond C are dropped and counted. With C = T (capacity_factor >= E / k) nothing can be
dropped. `dense`: every expert sees every token; no capacity, no drops, E / k times the work. The reference.

Shapes: T tokens of this rank, D width, k choices per token, E experts of which E/n live on this rank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import jax
import jax.numpy as jnp

from training.config import Dispatch, Model
from training.model.leaf import Array

EXPERT_AXIS = "expert"


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SwiGLU:
    """down(silu(x gate) * (x up)); routed experts carry a leading axis of experts."""

    gate: Array  # [..., D, F]
    up: Array  # [..., D, F]
    down: Array  # [..., F, D]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Routing:
    """Each token's choices. Tokens of padding rows are not `valid`: they take no slot and are no drop."""

    experts: jax.Array  # int32 [T, k]
    gates: jax.Array  # float32 [T, k]
    valid: jax.Array  # bool [T]
    load: jax.Array  # float32 [E], assignments that valid tokens want


Dispatcher = Callable[[SwiGLU, jax.Array, Routing], tuple[jax.Array, jax.Array]]
"""(experts of this rank, x [T, D], routing) -> (y [T, D], dropped assignments of this rank, float32 [])."""


def make_dispatcher(dispatch: Dispatch, model: Model) -> Dispatcher:
    if dispatch.kind == "dense":
        return dense
    return lambda experts, x, routing: all_to_all(
        experts, x, routing, slots(dispatch, model, x.shape[0]), model.experts
    )


def slots(dispatch: Dispatch, model: Model, tokens: int) -> int:
    """Slots per expert for one source rank; never more than tokens, as a token chooses an expert at most once."""
    return min(tokens, ceil(dispatch.capacity_factor * tokens * model.experts_per_token / model.experts))


def swiglu(parameters: SwiGLU, x: jax.Array) -> jax.Array:
    return (jax.nn.silu(x @ parameters.gate) * (x @ parameters.up)) @ parameters.down


def all_to_all(
    experts: SwiGLU, x: jax.Array, routing: Routing, capacity: int, total_experts: int
) -> tuple[jax.Array, jax.Array]:
    """Fixed capacity: pack slots, exchange, compute, exchange back, and sum each token's results by its gates."""
    choices = routing.experts.shape[1]
    assignment, filled, slot, kept = _take_slots(routing, capacity, total_experts)
    packed = jnp.where(filled[:, None], x[assignment // choices], 0.0)  # [E * C, D]
    received = _exchange(packed.reshape(total_experts, capacity, -1))
    computed = _exchange_back(swiglu(experts, received), capacity).reshape(total_experts * capacity, -1)
    weights = jnp.where(kept, routing.gates, 0.0)
    y = jnp.einsum("tkd,tk->td", computed[slot], weights)
    return y, jnp.sum(routing.load) - jnp.sum(kept, dtype=jnp.float32)


def _take_slots(routing: Routing, capacity: int, experts: int) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Match assignments (token x k + choice) and slots (expert x C + place), both ways.

    Returns assignment of each slot [E * C] and whether it is filled, slot of each assignment [T, k] and whether it was
    kept.
    """
    tokens, choices = routing.experts.shape
    wanted = jnp.where(routing.valid[:, None], routing.experts, experts).reshape(-1)  # `experts` stands for none
    order = jnp.argsort(wanted, stable=True)  # by expert, then by token
    first = jnp.pad(jnp.cumsum(routing.load.astype(jnp.int32)), (1, 0))  # where each expert's run begins in that order
    place_in_order = first[:-1, None] + jnp.arange(capacity)
    filled = place_in_order < first[1:, None]
    assignment = order[jnp.minimum(place_in_order, tokens * choices - 1)]
    rank_in_order = jnp.zeros_like(order).at[order].set(jnp.arange(order.size), unique_indices=True)
    place = rank_in_order - first[wanted]  # of each assignment among its expert's
    kept = (place < capacity) & (wanted < experts)
    slot = jnp.where(kept, wanted * capacity + place, 0)
    return assignment.reshape(-1), filled.reshape(-1), slot.reshape(tokens, choices), kept.reshape(tokens, choices)


def _exchange(packed: jax.Array) -> jax.Array:
    """[E, C, D] by expert here -> [E/n, n * C, D]: this rank's experts, slots of all n sources."""
    experts, capacity, width = packed.shape
    sources = jax.lax.axis_size(EXPERT_AXIS)
    by_owner = packed.reshape(sources, experts // sources, capacity, width)
    by_source = jax.lax.all_to_all(by_owner, EXPERT_AXIS, split_axis=0, concat_axis=0)
    return by_source.transpose(1, 0, 2, 3).reshape(experts // sources, sources * capacity, width)


def _exchange_back(computed: jax.Array, capacity: int) -> jax.Array:
    """The inverse of `_exchange`."""
    local, _, width = computed.shape
    sources = jax.lax.axis_size(EXPERT_AXIS)
    by_source = computed.reshape(local, sources, capacity, width).transpose(1, 0, 2, 3)
    by_owner = jax.lax.all_to_all(by_source, EXPERT_AXIS, split_axis=0, concat_axis=0)
    return by_owner.reshape(sources * local, capacity, width)


def dense(experts: SwiGLU, x: jax.Array, routing: Routing) -> tuple[jax.Array, jax.Array]:
    """Gather the rack's experts, compute each for all tokens, and weigh by the gates."""
    everyone = jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, EXPERT_AXIS, tiled=True), experts)
    chosen = jax.nn.one_hot(routing.experts, everyone.gate.shape[0], dtype=x.dtype)  # [T, k, E]
    weights = jnp.einsum("tke,tk,t->te", chosen, routing.gates, routing.valid.astype(x.dtype))
    y = jnp.einsum("etd,te->td", swiglu(everyone, x), weights)
    return y, jnp.zeros((), jnp.float32)
