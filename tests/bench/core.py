"""How long the core takes to decide, for a fleet of 11 racks x 18 nodes x 4 ranks in a simulated world."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from supervisor.core.decide import decide
from supervisor.core.memory import Phase
from tests.bench.report import Row, timed
from tests.builders import fleet, spec
from tests.core.world import World

RACKS, NODES, RANKS = 11, 18, 4
SPARES = 2  # of the 18 nodes of each rack
PASSES = 20  # quiet ones, each round


def bench(rounds: int, folder: Path) -> tuple[list[Row], Any]:
    quiet: list[float] = []
    fault: list[float] = []
    for _ in range(rounds):
        world = _training()
        quiet += [_timed_pass(world) for _ in range(PASSES)]
        world.kill_rank(RANKS)
        fault.append(max(_timed_pass(world) for _ in range(5)))
    what = f"one decision, {RACKS} x {NODES} x {RANKS}"
    rows = [timed(what, quiet, "a pass without news"), timed(what, fault, "the longest pass of a killed rank")]
    return rows, {"quiet": quiet, "fault": fault}


def _training() -> World:
    nodes = {node.name: node for node in fleet(RACKS, NODES)}
    world = World(spec(RACKS, NODES - SPARES, RANKS, min_racks=8), nodes, total=100_000)
    for _ in range(100):
        world.tick()
        if world.phase is Phase.RUNNING and world.step > 0:
            return world
    raise RuntimeError(f"the simulated run does not get to train:\n{world.story()}")


def _timed_pass(world: World) -> float:
    """Seconds of the pure decision alone."""
    world.move()
    observation = world.observe()
    began = time.perf_counter()
    decide(world.spec, world.memory, observation, world.now)
    took = time.perf_counter() - began
    world.decide()
    return took
