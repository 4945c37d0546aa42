"""The same steps on different layouts, in one process on eight CPU devices."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import jax
import numpy as np
import pytest

from training.compiling import Compiler
from training.config import Config, load_config
from training.contract import Contract, Layout
from training.data import Batches, open_batches
from training.feed import Feed
from training.flops import count_parameters
from training.inbox import unpack_inbox
from training.mesh import everywhere, make_mesh
from training.optimizer import make_optimizer
from training.shares import share_out
from training.step import init_state, make_evaluation, make_step, state_shapes

pytestmark = pytest.mark.xdist_group("trainer-layouts")  # its tests share one run
SMALL = ("model.layers=1", "model.width=16", "model.expert_width=16", "model.head_width=8", "data.sequence=16")
STEPS = 4


@dataclass(frozen=True)
class Trained:
    losses: list[float]
    rows: list[int]
    tokens: list[int]
    dropped: list[float]
    checksums: list[int]
    requests: list[tuple[bool, bool]]
    heldout: float


def train(config: Config, racks: int, ranks: int) -> Trained:
    """A few steps from the start; the last asks to save through the first rank alone."""
    layout = Layout(racks, ranks, 1)
    mesh = make_mesh(layout, jax.devices()[: layout.ranks])
    batches = open_batches((), config.data, config.seed)
    feed = Feed(mesh, share_out(config.data, layout.ranks), config.data.sequence)
    state, shapes, batch_shapes = init_state(config, mesh), state_shapes(config, mesh), feed.shapes()
    compiler = Compiler(config, Contract(layout), mesh)
    rate = jax.ShapeDtypeStruct((), np.float32, sharding=everywhere(mesh))
    step = compiler.compile("step", make_step(config, mesh), shapes, batch_shapes, rate)
    evaluate = compiler.compile(
        "evaluation", make_evaluation(config, mesh), shapes.parameters, shapes.bias, batch_shapes
    )
    seen = []
    for index in range(STEPS):
        loaded = feed.load(batches.train_rows, index)
        batch = feed.batch(loaded, save=index == STEPS - 1)
        state, metrics = step(state, batch, jax.device_put(np.float32(0.003), everywhere(mesh)))
        seen.append(metrics)
    total, tokens = evaluate(state.parameters, state.bias, feed.batch(feed.load(batches.heldout_rows, 0)))
    heard = [unpack_inbox(np.asarray(m.inbox)) for m in seen]
    return Trained(
        losses=[float(m.loss) for m in seen],
        rows=[int(m.rows) for m in seen],
        tokens=[int(m.tokens) for m in seen],
        dropped=[float(m.dropped) for m in seen],
        checksums=[h.checksum for h in heard],
        requests=[(h.save, h.stop) for h in heard],
        heldout=float(total) / float(tokens),
    )


@pytest.fixture(scope="module")
def config() -> Config:
    return load_config("tiny", (*SMALL, "data.rows_per_microbatch=2"))


@pytest.fixture(scope="module")
def alone(config: Config) -> Trained:
    return train(config, 1, 1)


@pytest.mark.parametrize(
    ("racks", "ranks"),
    [(2, 2), (3, 1)],
    ids=["two racks of two", "three racks: shares of 2, 3 and 3 rows, in two microbatches of two"],
)
def test_every_layout_trains_on_the_same_batch_and_agrees(
    config: Config, alone: Trained, racks: int, ranks: int
) -> None:
    spread = train(config, racks, ranks)
    assert spread.losses == pytest.approx(alone.losses, abs=1e-5)
    assert spread.heldout == pytest.approx(alone.heldout, abs=1e-5)
    assert spread.checksums == alone.checksums
    assert spread.rows == alone.rows == [8] * STEPS
    assert spread.tokens == [8 * 16] * STEPS, "padding is no token"
    assert spread.dropped == [0.0] * STEPS
    assert alone.losses[-1] < alone.losses[0]


def test_a_request_of_one_rank_is_heard_by_all_at_that_step(alone: Trained) -> None:
    assert alone.requests == [(False, False)] * (STEPS - 1) + [(True, False)]


def test_the_checksum_is_that_of_the_rows_of_the_plan(config: Config, alone: Trained) -> None:
    batches: Batches = open_batches((), config.data, config.seed)
    for index, checksum in enumerate(alone.checksums):
        ids = range(index * 8, index * 8 + 8)
        rows = batches.train_rows(ids)
        sums = (zlib.crc32(row.tobytes(), zlib.crc32(str(i).encode())) for i, row in zip(ids, rows, strict=True))
        assert checksum == sum(sums) % 2**32


def test_the_state_starts_the_same_on_every_layout_and_has_the_counted_parameters(config: Config) -> None:
    one = init_state(config, make_mesh(Layout(1, 1, 1), jax.devices()[:1]))
    four = init_state(config, make_mesh(Layout(2, 2, 1), jax.devices()[:4]))
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(four), strict=True):
        np.testing.assert_array_equal(a, b)
    assert sum(leaf.size for leaf in jax.tree.leaves(one.parameters)) == count_parameters(config.model).total
    fresh = make_optimizer(config.optimizer).init(one.parameters)
    for a, b in zip(jax.tree.leaves(one.moments), jax.tree.leaves(fresh), strict=True):
        np.testing.assert_array_equal(a, b)
