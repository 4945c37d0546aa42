"""The compiled step: gradients under `shard_map`, one reduction over the gang, one update. And its state.

Rows are spread over (replica, expert), experts over `expert`, all else is on every rank. Every rank differentiates the
sum of its own rows' losses; collectives inside (all_to_all) carry gradients between ranks, so adding them up yields
the gradient of the gang's sum. Dividing by the gang's true tokens makes the mean: padding has weight zero and changes
nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from training.config import Config
from training.mesh import RANKS
from training.model.dispatch import make_dispatcher
from training.model.leaf import Leaf
from training.model.model import Parameters, loss_sum, parameter_leaves
from training.model.moe import Load
from training.optimizer import make_optimizer


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """All that a checkpoint holds."""

    parameters: Parameters
    moments: optax.OptState
    bias: jax.Array  # float32 [L, E], the routers' balance


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Batch:
    """The leading axis counts ranks; M microbatches of R rows."""

    rows: jax.Array  # int32 [ranks, M, R, sequence + 1]
    valid: jax.Array  # bool [ranks, M, R], false for padding
    inbox: jax.Array  # float32 [ranks, len(INBOX)]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Sums:
    """Added up over microbatches and ranks; float32."""

    loss: jax.Array
    tokens: jax.Array
    rows: jax.Array
    load: Load  # of each layer: [L, E] and [L]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Metrics:
    """Of the whole gang, the same on every rank; float32."""

    loss: jax.Array  # mean over true tokens, nats
    gradient_norm: jax.Array
    tokens: jax.Array
    rows: jax.Array
    dropped: jax.Array  # assignments without a slot
    inbox: jax.Array  # [len(INBOX)]


def init_state(config: Config, mesh: Mesh) -> State:
    """The state before the first update: a pure function of the seed, whatever the layout."""
    shapes = state_shapes(config, mesh)

    def start(path: tuple[Any, ...], leaf: Leaf, shape: jax.ShapeDtypeStruct) -> jax.Array:
        return leaf.materialise(config.seed, jax.tree_util.keystr(path), shape.sharding)

    def zeros(shape: jax.ShapeDtypeStruct) -> jax.Array:
        return jax.make_array_from_callback(
            shape.shape, shape.sharding, lambda index: np.zeros(shape.sharding.shard_shape(shape.shape), shape.dtype)
        )

    parameters = jax.tree_util.tree_map_with_path(start, parameter_leaves(config.model), shapes.parameters)
    return State(parameters, jax.tree.map(zeros, shapes.moments), zeros(shapes.bias))


def specs_of(tree: Any) -> Any:
    """The partition of each leaf of parameters or moments."""
    return jax.tree_util.tree_map_with_path(lambda path, _: _spec(path), tree)


def _spec(path: tuple[Any, ...]) -> P:
    """Routed experts are spread over `expert` on the axis after layers, the rest is everywhere. Moments repeat the
    parameters' tree.
    """
    return P(None, "expert") if any(getattr(key, "name", None) == "experts" for key in path) else P()


@functools.cache  # a rank asks several times on its way to the first step, and tracing the optimizer takes 10 ms
def state_shapes(config: Config, mesh: Mesh) -> State:
    """The state as `ShapeDtypeStruct`s with shardings: what a restore must produce and a fresh start does produce."""

    def placed(path: tuple[Any, ...], leaf: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, _spec(path)))

    parameters = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, jnp.float32), parameter_leaves(config.model)
    )
    moments = jax.eval_shape(make_optimizer(config.optimizer).init, parameters)  # all of them start as zeros
    bias = jax.ShapeDtypeStruct((config.model.layers, config.model.experts), jnp.float32)
    return jax.tree_util.tree_map_with_path(placed, State(parameters, moments, bias))


def make_step(config: Config, mesh: Mesh) -> Callable[[State, Batch, jax.Array], tuple[State, Metrics]]:
    """(state, batch, learning rate float32 []) -> (state after one update, metrics). A jitted function; it donates
    the state.
    """
    optimizer = make_optimizer(config.optimizer)

    def step(state: State, batch: Batch, rate: jax.Array) -> tuple[State, Metrics]:
        gradients, sums, inbox = _gradients_of_gang(config, mesh, state, batch)
        gradients = jax.tree.map(lambda leaf: leaf / sums.tokens, gradients)
        updates, moments = optimizer.update(gradients, state.moments, state.parameters)
        parameters = jax.tree.map(lambda leaf, update: leaf - rate * update, state.parameters, updates)
        metrics = Metrics(
            loss=sums.loss / sums.tokens,
            gradient_norm=_norm(gradients),
            tokens=sums.tokens,
            rows=sums.rows,
            dropped=jnp.sum(sums.load.dropped),
            inbox=inbox,
        )
        return State(
            parameters, moments, _balance(state.bias, sums.load.assignments, config.dispatch.balance_rate)
        ), metrics

    shardings = jax.tree.map(lambda leaf: leaf.sharding, state_shapes(config, mesh))
    return jax.jit(step, donate_argnums=0, out_shardings=(shardings, NamedSharding(mesh, P())))


def make_evaluation(
    config: Config, mesh: Mesh
) -> Callable[[Parameters, jax.Array, Batch], tuple[jax.Array, jax.Array]]:
    """(parameters, bias, batch) -> (sum of losses, tokens), both of the whole gang. A jitted function."""

    def local(parameters: Parameters, bias: jax.Array, batch: Batch) -> tuple[jax.Array, jax.Array]:
        sums = _over_microbatches(lambda rows, valid: _sums(config, parameters, bias, rows, valid)[1], batch)
        return jax.lax.psum((sums.loss, sums.tokens), RANKS)

    def evaluate(parameters: Parameters, bias: jax.Array, batch: Batch) -> tuple[jax.Array, jax.Array]:
        specs = (specs_of(parameters), P(), P(RANKS))
        return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(parameters, bias, batch)

    return jax.jit(evaluate, out_shardings=NamedSharding(mesh, P()))


def _sums(
    config: Config, parameters: Parameters, bias: jax.Array, rows: jax.Array, valid: jax.Array
) -> tuple[jax.Array, Sums]:
    """The loss of one microbatch of this rank, and everything that is added up beside it."""
    loss, load = loss_sum(parameters, bias, rows, valid, config.model, make_dispatcher(config.dispatch, config.model))
    true_rows = jnp.sum(valid, dtype=jnp.float32)
    return loss, Sums(loss, true_rows * config.data.sequence, true_rows, load)


def _over_microbatches(function: Callable[[jax.Array, jax.Array], Any], batch: Batch) -> Any:
    """The sum of function(rows, valid) over this rank's microbatches, one at a time."""
    if batch.rows.shape[1] == 1:  # nothing to add up: compiles to a third less
        return function(batch.rows[0, 0], batch.valid[0, 0])

    def add(total: Any, microbatch: tuple[jax.Array, jax.Array]) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, function(*microbatch)), None

    shapes = jax.eval_shape(function, batch.rows[0, 0], batch.valid[0, 0])
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    return jax.lax.scan(add, zeros, (batch.rows[0], batch.valid[0]))[0]


def _gradients_of_gang(config: Config, mesh: Mesh, state: State, batch: Batch) -> tuple[Parameters, Sums, jax.Array]:
    """Gradients of the gang's summed loss, the gang's sums and the sum of the inboxes."""
    specs = specs_of(state.parameters)

    def local(parameters: Parameters, bias: jax.Array, batch: Batch) -> tuple[Parameters, tuple[Sums, jax.Array]]:
        def one(rows: jax.Array, valid: jax.Array) -> tuple[Parameters, Sums]:
            return jax.grad(lambda p: _sums(config, p, bias, rows, valid), has_aux=True)(parameters)

        gradients, sums = _over_microbatches(one, batch)
        return _reduce(gradients, (sums, batch.inbox[0]), specs)

    reduced = jax.shard_map(local, mesh=mesh, in_specs=(specs, P(), P(RANKS)), out_specs=(specs, P()), check_vma=False)
    gradients, (sums, inbox) = reduced(state.parameters, state.bias, batch)
    return gradients, sums, inbox


def _reduce(gradients: Parameters, sums: Any, specs: Parameters) -> tuple[Parameters, Any]:
    """Two collectives in all: experts over the racks, everything else over the gang, each as one vector.

    Flattened by hand because a small step on CPU pays for the number of collectives, not for their bytes.
    """
    leaves, tree = jax.tree.flatten(gradients)
    spread = [spec != P() for spec in jax.tree.leaves(specs, is_leaf=lambda spec: isinstance(spec, P))]
    everywhere, unravel_everywhere = ravel_pytree(
        ([leaf for leaf, s in zip(leaves, spread, strict=True) if not s], sums)
    )
    experts, unravel_experts = ravel_pytree([leaf for leaf, s in zip(leaves, spread, strict=True) if s])
    rest, sums = unravel_everywhere(jax.lax.psum(everywhere, RANKS))
    routed = unravel_experts(jax.lax.psum(experts, "replica"))
    sources = {True: iter(routed), False: iter(rest)}
    return jax.tree.unflatten(tree, [next(sources[s]) for s in spread]), sums


def _norm(tree: Any) -> jax.Array:
    return jnp.sqrt(sum(jnp.sum(leaf * leaf) for leaf in jax.tree.leaves(tree)))


def _balance(bias: jax.Array, assignments: jax.Array, rate: float) -> jax.Array:
    """Move each expert's bias toward even load by at most `rate`; [L, E]. A function of the gang's counts alone."""
    even = jnp.mean(assignments, axis=-1, keepdims=True)
    return bias + rate * jnp.clip((even - assignments) / jnp.maximum(even, 1.0), -1.0, 1.0)
