"""Hangs, slow nodes, growing back and rollbacks, played whole in the simulated world."""

from __future__ import annotations

import pytest

from supervisor.core.memory import Phase, RequestState
from supervisor.core.observation import Ask, Checkpoint
from supervisor.core.reasons import Reason
from supervisor.core.spec import Budget, Deadlines, Growing, Limits
from tests.builders import fleet, spec
from tests.core.story import Expected, Story, at, once, once_said, starting
from tests.core.world import World

QUICK = Deadlines(
    importing=Limits(8_000, 20_000),
    restore=Limits(8_000, 20_000),
    first_step=Limits(8_000, 20_000),
    step=Limits(4_000, 20_000),
)


def quick(**changes: object) -> object:
    return lambda: spec(deadlines=QUICK, **changes)


def three_racks() -> dict[str, object]:
    return {node.name: node for node in fleet(racks=3)}


STORIES = (
    Story(
        "a stopped rank is named and the gang restarts in place",
        when=(at(12).hang(2),),
        then=(Expected(Reason.RANK_STOPPED, Reason.RESTART_IN_PLACE, 10, 2, "node r1n0"),),
        given={"spec": quick()},
        attempts=2,
    ),
    Story(
        "a rank that spins before the step is named late",
        when=(at(12).hang(1, "R", 1.0),),
        then=(Expected(Reason.RANK_LATE, Reason.RESTART_IN_PLACE, 10, 2, "node r0n1"),),
        given={"spec": quick()},
    ),
    Story(
        "where all have entered and spin nobody is named",
        when=(at(12).hang(1, "R", 1.0),),
        then=(Expected(Reason.HUNG_IN_STEP, Reason.RESTART_IN_PLACE, 10, 2, "unknown"),),
        given={"spec": quick(), "stuck_inside": True},
    ),
    Story(
        "a second hang on the same node takes the node out",
        when=(at(12).hang(2), at(22, attempt=2).hang(2)),
        then=(
            Expected(Reason.RANK_STOPPED, Reason.RESTART_IN_PLACE),
            Expected(Reason.RANK_STOPPED, Reason.SWAP_SPARE, 20, 2, "node r1n0"),
        ),
        given={"spec": quick()},
        holds=(("the second verdict points at hardware", lambda w: w.incidents[2].verdict.cause.value == "hardware"),),
    ),
    Story(
        "a second hang on another node points at the software",
        when=(at(12).hang(2), at(22, attempt=2).hang(0)),
        then=(
            Expected(Reason.RANK_STOPPED, Reason.RESTART_IN_PLACE),
            Expected(Reason.RANK_STOPPED, Reason.RESTART_IN_PLACE),
        ),
        given={"spec": quick()},
        holds=(("the second verdict points at software", lambda w: w.incidents[2].verdict.cause.value == "software"),),
    ),
    Story(
        "a hang during recovery moves off the node that hung",
        when=(at(12).kill_rank(3), starting(2).hang(1)),
        then=(Expected(Reason.KILLED_FROM_OUTSIDE), Expected(Reason.RANK_STOPPED, Reason.SWAP_SPARE)),
        given={"spec": quick()},
    ),
    Story(
        "repeated hangs without a culprit swap racks until it is out",
        when=(at(12).hang(0, "R", 1.0), at(22, attempt=2).hang(0, "R", 1.0)),
        then=(
            Expected(Reason.HUNG_IN_STEP, Reason.RESTART_IN_PLACE),
            Expected(Reason.HUNG_IN_STEP, Reason.MOVE_TO_SPARE_RACK),
        ),
        given={"spec": quick(), "stuck_inside": True, "nodes": three_racks},
    ),
    Story(
        "the run grows back to a rack that has been whole for long enough",
        when=(at(12).kill_rack("r1"), at(16).revive("r1")),
        then=(Expected(Reason.RACK_LOST, Reason.DROP_RACK),),
        given={"spec": quick(growing=Growing.ALWAYS, settle_ms=4_000)},
        attempts=3,
        holds=(
            ("it trains on both racks again", lambda w: len(w.memory.placement.racks) == 2),
            ("nothing was trained twice for it", lambda w: w.memory.lineage[-1].parent == Checkpoint(2, 26)),
        ),
    ),
    Story(
        "a run that must not grow stays small",
        when=(at(12).kill_rack("r1"), at(16).revive("r1")),
        then=(Expected(Reason.RACK_LOST, Reason.DROP_RACK),),
        given={"spec": quick(growing=Growing.NEVER, settle_ms=1_000)},
        attempts=2,
    ),
    Story(
        "growing back does not pay near the end",
        when=(at(12).kill_rack("r1"), at(33).revive("r1")),
        then=(Expected(Reason.RACK_LOST, Reason.DROP_RACK),),
        given={"spec": quick(settle_ms=1_000)},
        attempts=2,
    ),
    Story(
        "growing back pays with a long way to go",
        when=(at(12).kill_rack("r1"), at(16).revive("r1")),
        then=(Expected(Reason.RACK_LOST, Reason.DROP_RACK),),
        given={"spec": quick(settle_ms=1_000), "total": 120},
        attempts=3,
    ),
    Story(
        "a person rolls back and passes over batches",
        when=(at(22).request(Ask.ROLLBACK, 15, skip_batches=3),),
        then=(Expected(Reason.ROLLED_BACK, Reason.RESTART_IN_PLACE, 15, 8, "a person"),),
        requests=(RequestState.DONE,),
        attempts=2,
        holds=(("the skip is remembered", lambda w: w.memory.skips == ((15, 3),)),),
    ),
    Story(
        "a rollback to a step that was never saved is refused and training goes on",
        when=(at(22).request(Ask.ROLLBACK, 13),),
        requests=(RequestState.REFUSED,),
        attempts=1,
    ),
    Story(
        "a rollback of a held run lets it go on",
        given={"non_finite_at": 23},
        when=(
            once(lambda w: w.phase is Phase.HELD).set(non_finite_at=None),
            once(lambda w: w.phase is Phase.HELD).request(Ask.ROLLBACK, 10, skip_batches=5),
        ),
        then=(Expected(Reason.NON_FINITE_LOSS), Expected(Reason.ROLLED_BACK, resumed_at=10)),
        requests=(RequestState.DONE,),
    ),
    Story(
        "saves that fail are told and held after the limit",
        when=(at(12).set(saves_fail=True),),
        given={"spec": lambda: spec(unsaved_limit_ms=8_000), "total": 200},
        ends=Phase.HELD,
        because=Reason.SAVES_FAIL,
    ),
    Story(
        "saves that work again are told and nothing is held",
        when=(at(12).set(saves_fail=True), at(17).set(saves_fail=False)),
        given={"spec": lambda: spec(unsaved_limit_ms=60_000)},
        holds=(
            ("the failure was told", lambda w: w.said(Reason.SAVES_FAIL)),
            ("and its end", lambda w: w.said(Reason.SAVES_WORK)),
        ),
        attempts=1,
    ),
    Story(
        "a node that slows the gang is replaced by a spare at a checkpoint",
        when=(
            once(lambda w: w.step >= 60).set(own_ms={"r0n0": 10, "r0n1": 900, "r1n0": 10, "r1n1": 10}, tick_ms=2_000),
            once_said(Reason.REPLACE_SLOW_NODE).set(own_ms={"r0n0": 10}, tick_ms=1_000),
        ),
        then=(Expected(Reason.NODE_SLOW, blames="node r0n1"),),
        given={
            "spec": lambda: spec(slow_for_ms=10_000),
            "total": 200,
            "own_ms": lambda: {"r0n0": 10, "r0n1": 10, "r1n0": 10, "r1n1": 10},
        },
        attempts=2,
        holds=(("the slow node is out", lambda w: "r0n1" not in w.memory.placement.nodes),),
    ),
    Story(
        "a slow node is endured where no spare is left",
        when=(
            once(lambda w: w.step >= 60).set(own_ms={"r0n0": 10, "r0n1": 900, "r1n0": 10, "r1n1": 10}, tick_ms=2_000),
        ),
        then=(Expected(Reason.NODE_SLOW, blames="node r0n1"),),
        given={
            "spec": lambda: spec(slow_for_ms=10_000),
            "nodes": lambda: {node.name: node for node in fleet(nodes=2)},
            "total": 200,
            "own_ms": lambda: {"r0n0": 10, "r0n1": 10, "r1n0": 10, "r1n1": 10},
        },
        attempts=1,
    ),
)


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(story: Story) -> None:
    story.check(story.play())


def test_a_node_that_hangs_again_and_again_is_set_aside() -> None:
    world = World(spec=spec(deadlines=QUICK, node_faults=Budget(2, 3_600_000)))  # type: ignore[arg-type]
    for _ in range(2):
        while world.step < 12 + 10 * (world.memory.newest_attempt - 1) or world.memory.attempt is None:
            world.tick()
        world.hang(2)
        number = world.memory.newest_attempt
        while world.memory.newest_attempt == number:
            world.tick()
    assert world.memory.attempt is not None
    assert "r1n0" not in world.memory.attempt.placement.nodes
    assert world.said(Reason.NODE_SET_ASIDE)
