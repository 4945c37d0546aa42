"""Expert-parallel dispatch against the dense reference and an independent count in numpy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from training.compiling import compile_lowered
from training.contract import Layout
from training.mesh import RANKS, make_mesh
from training.model.dispatch import Dispatcher, Routing, SwiGLU, all_to_all, dense
from training.model.moe import route

EXPERTS, CHOICES, WIDTH, HIDDEN, TOKENS = 8, 2, 8, 12, 24  # tokens of one rank
SPECS = (P("expert"), P(RANKS), P(RANKS), P(RANKS))


def layout_mesh(racks: int, ranks: int) -> Mesh:
    return make_mesh(Layout(racks, ranks, 1), jax.devices()[: racks * ranks])


def inputs(ranks: int, skew: float = 0.0) -> tuple[SwiGLU, jax.Array, jax.Array, jax.Array]:
    """Experts, tokens, router logits (`skew` favours the first experts) and which tokens are true."""
    random = np.random.default_rng(7)

    def normal(*shape: int) -> jax.Array:
        return jnp.asarray(random.standard_normal(shape), jnp.float32)

    experts = SwiGLU(
        normal(EXPERTS, WIDTH, HIDDEN), normal(EXPERTS, WIDTH, HIDDEN), normal(EXPERTS, HIDDEN, WIDTH) * 0.3
    )
    logits = normal(ranks * TOKENS, EXPERTS) - skew * jnp.arange(EXPERTS)
    valid = jnp.arange(ranks * TOKENS) % TOKENS < TOKENS - 3  # the last three of each rank are padding
    return experts, normal(ranks * TOKENS, WIDTH), logits, valid


def run(mesh: Mesh, dispatcher: Dispatcher, *arguments: jax.Array) -> tuple[jax.Array, jax.Array, Routing]:
    """(y, drops of each rank, routing) over the whole mesh."""

    def local(experts: SwiGLU, x: jax.Array, logits: jax.Array, valid: jax.Array) -> tuple[jax.Array, ...]:
        routing = route(logits, jnp.zeros(EXPERTS), valid, CHOICES)
        y, dropped = dispatcher(experts, x, routing)
        return y, dropped[None], routing.experts, routing.gates

    spread = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=(P(RANKS),) * 4, check_vma=False))
    return compile_lowered(spread.lower(*arguments), "fastest")(*arguments)


def gradients(mesh: Mesh, dispatcher: Dispatcher, *arguments: jax.Array) -> tuple[SwiGLU, jax.Array, jax.Array]:
    """Of a sum over all ranks with unequal weights, by experts, tokens and router logits."""

    def local(experts: SwiGLU, x: jax.Array, logits: jax.Array, valid: jax.Array) -> tuple[SwiGLU, ...]:
        def total(experts: SwiGLU, x: jax.Array, logits: jax.Array) -> jax.Array:
            y, _ = dispatcher(experts, x, route(logits, jnp.zeros(EXPERTS), valid, CHOICES))
            return jnp.sum(y * jnp.cos(jnp.arange(y.size).reshape(y.shape)))

        by_experts, by_x, by_logits = jax.grad(total, argnums=(0, 1, 2))(experts, x, logits)
        return jax.lax.psum(by_experts, "replica"), by_x, by_logits

    out_specs = (P("expert"), P(RANKS), P(RANKS))
    spread = jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=out_specs, check_vma=False)
    return compile_lowered(jax.jit(spread).lower(*arguments), "fastest")(*arguments)


def exchange(capacity: int) -> Dispatcher:
    return lambda experts, x, routing: all_to_all(experts, x, routing, capacity, EXPERTS)


@pytest.mark.parametrize(("racks", "ranks"), [(1, 1), (1, 4), (2, 2)])
def test_with_ample_capacity_it_equals_the_dense_reference(racks: int, ranks: int) -> None:
    mesh, arguments = layout_mesh(racks, ranks), inputs(racks * ranks)
    y, dropped, *_ = run(mesh, exchange(TOKENS), *arguments)
    reference, *_ = run(mesh, dense, *arguments)
    np.testing.assert_allclose(y, reference, atol=2e-5)
    assert float(jnp.sum(dropped)) == 0
    ours = gradients(mesh, exchange(TOKENS), *arguments)
    theirs = gradients(mesh, dense, *arguments)
    for mine, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert float(jnp.max(jnp.abs(other))) > 0.1, "a gradient of zero would prove nothing"
        np.testing.assert_allclose(mine, other, atol=5e-5)


@pytest.mark.parametrize("capacity", [1, 5, 9])
@pytest.mark.parametrize("skew", [0.0, 1.0])
def test_drops_and_results_are_those_that_numpy_counts(capacity: int, skew: float) -> None:
    mesh, (experts, x, logits, valid) = layout_mesh(1, 4), inputs(4, skew)
    y, dropped, chosen, gates = (np.asarray(a) for a in run(mesh, exchange(capacity), experts, x, logits, valid))
    expected_y = np.zeros_like(y)
    expected_drops = [0] * 4
    for rank in range(4):
        taken = [0] * EXPERTS  # slots of this source rank, in the order of its tokens
        for token in range(rank * TOKENS, (rank + 1) * TOKENS):
            if not valid[token]:
                continue
            for expert, gate in zip(chosen[token], gates[token], strict=True):
                taken[expert] += 1
                if taken[expert] > capacity:
                    expected_drops[rank] += 1
                else:
                    expected_y[token] += gate * numpy_expert(experts, expert, np.asarray(x[token]))
    assert dropped.tolist() == expected_drops
    assert sum(expected_drops) > 0 or capacity == 9
    np.testing.assert_allclose(y, expected_y, atol=2e-5)


def numpy_expert(experts: SwiGLU, expert: int, x: np.ndarray) -> np.ndarray:
    gate = x @ np.asarray(experts.gate[expert])
    return (gate / (1 + np.exp(-gate)) * (x @ np.asarray(experts.up[expert]))) @ np.asarray(experts.down[expert])
