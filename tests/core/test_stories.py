"""One table of stories: what happens to a run, how it is recovered from, what it costs and how it ends.

The fleet is two racks of three nodes, of which the layout needs two; a checkpoint every 5 steps, 40 in all.
"""

from __future__ import annotations

import pytest

from supervisor.core.incident import Outcome
from supervisor.core.memory import Phase, RequestState
from supervisor.core.observation import Ask, Checkpoint, LayoutCheck
from supervisor.core.reasons import Reason
from supervisor.core.spec import Budget, Budgets, Layout
from tests.builders import fleet, spec
from tests.core.story import (
    Expected,
    Story,
    at,
    between_attempts,
    from_the_start,
    held,
    once,
    once_said,
    saving,
    starting,
    stepping,
    stopping,
    suspended,
)
from tests.core.tree import Tree
from tests.core.world import World

KILLED, LOST, ERROR = Reason.KILLED_FROM_OUTSIDE, Reason.NODE_LOST, Reason.PROGRAM_ERROR
IN_PLACE, SWAP, DROP = Reason.RESTART_IN_PLACE, Reason.SWAP_SPARE, Reason.DROP_RACK
DONE, REFUSED = RequestState.DONE, RequestState.REFUSED
HOUR_MS = 3_600_000

LADDER = (
    Story("nothing happens and the run finishes", when=(), attempts=1),
    Story(
        "a rank is killed and all ranks restart in place",
        when=(at(12).kill_rank(2),),
        then=(Expected(KILLED, IN_PLACE, resumed_at=10, lost=2, blames="unknown"),),
    ),
    Story(
        "rank 0 is killed",
        when=(at(13).kill_rank(0),),
        then=(Expected(KILLED, IN_PLACE, resumed_at=10, lost=3),),
    ),
    Story(
        "a rank fails with an exception of the trainer",
        when=(at(12).exit_rank(1, 70, "Traceback\nValueError: bad shape"),),
        then=(Expected(ERROR, IN_PLACE, 10, 2, "code"),),
    ),
    Story(
        "a rank dies of a bus error, which blames its node",
        when=(at(12).kill_rank(3, signal=7),),
        then=(Expected(Reason.BUS_ERROR, IN_PLACE, 10, 2, "node r1n1"),),
    ),
    Story(
        "a node dies and the spare of its rack takes over",
        when=(at(12).kill_node("r0n1"),),
        then=(Expected(LOST, SWAP, resumed_at=10, lost=2, blames="node r0n1"),),
        holds=(
            ("the spare is in the dead node's slot", lambda w: w.memory.placement.nodes[1] == "r0n2"),
            ("the worker of the dead node was fenced", lambda w: ("r0n1", "r0n1-s2") in w.fenced),
        ),
    ),
    Story(
        "a second node of the rack dies with its spare gone already, and the rack is dropped",
        when=(at(12).kill_node("r0n1"), at(22).kill_node("r0n0")),
        then=(Expected(LOST, SWAP, 10, 2), Expected(LOST, DROP, 20, 2)),
        holds=(("it trains on one rack", lambda w: w.memory.placement.layout == Layout(1, 2, 1)),),
    ),
    Story(
        "a rack dies and the run goes on with fewer",
        when=(at(12).kill_rack("r1"),),
        then=(Expected(Reason.RACK_LOST, DROP, 10, 2, "rack r1"),),
    ),
    Story(
        "a rack in use dies and a spare rack takes its place",
        given={"spec": spec(racks=1)},
        when=(at(12).kill_rack("r0"),),
        then=(Expected(Reason.RACK_LOST, Reason.MOVE_TO_SPARE_RACK, 10, 2, "rack r0"),),
    ),
    Story(
        "after a rack was dropped and revived, the next fault grows the run back",
        when=(at(12).kill_rack("r1"), stepping(2).revive("r1"), at(22).kill_rank(0)),
        then=(Expected(Reason.RACK_LOST, DROP), Expected(KILLED, Reason.GROW, 20, 2)),
    ),
    Story(
        "a rack that comes back is said to be idle, once, and is used after a stop and a resume",
        when=(
            at(12).kill_rack("r1"),
            stepping(2).revive("r1"),
            once(lambda w: w.said(Reason.RACK_IDLE) and "rack r1 is whole again" in w.memory.message).request(Ask.STOP),
            suspended().request(Ask.RESUME),
        ),
        then=(Expected(Reason.RACK_LOST, DROP),),
        requests=(DONE, DONE),
        holds=(
            ("it was said once", lambda w: sum(note.reason is Reason.RACK_IDLE for note in w.notes) == 1),
            ("it trains on both", lambda w: w.memory.placement.layout == Layout(2, 2, 1)),
        ),
    ),
    Story(
        "with min_racks reached the run is held, and goes on by itself once a rack is revived",
        given={"spec": spec(min_racks=2)},
        when=(at(12).kill_rack("r1"), held().revive("r1")),
        then=(Expected(Reason.RACK_LOST, IN_PLACE, 10, 2),),
        holds=(("it was held for want of capacity", lambda w: w.said(Reason.INSUFFICIENT_CAPACITY)),),
    ),
    Story(
        "with min_racks reached and nothing revived the run stays held",
        given={"spec": spec(min_racks=2)},
        when=(at(12).kill_rack("r1"),),
        then=(Expected(Reason.RACK_LOST, Reason.INSUFFICIENT_CAPACITY),),
        ends=Phase.HELD,
        because=Reason.INSUFFICIENT_CAPACITY,
    ),
    Story(
        "every node dies, and comes back",
        when=(at(12).kill_rack("r0"), at(12).kill_rack("r1"), held().revive("r0"), held().revive("r1")),
        then=(Expected(Reason.RACK_LOST, resumed_at=10, lost=2),),
    ),
)

WORKERS = (
    Story(
        "a worker is killed, its node gets a new one, and the spare has taken over meanwhile",
        when=(at(12).kill_worker("r0n1"),),
        then=(Expected(LOST, SWAP, 10, 2, "node r0n1"),),
    ),
    Story(
        "a worker is killed where there is no spare, and comes back",
        given={"nodes": lambda: {node.name: node for node in fleet(nodes=2)}},
        when=(at(12).kill_worker("r1n0"),),
        then=(Expected(LOST, IN_PLACE, 10, 2),),
    ),
    Story(
        "a silent worker whose gang still steps is not lost",
        when=(at(12).cut_off("r0n1"), at(35).reconnect("r0n1")),
        attempts=1,
    ),
    Story(
        "a worker is cut off during a fault, and returns with the ranks of an old attempt, which end",
        when=(at(12).cut_off("r1n1"), at(14).kill_rank(0)),
        then=(Expected(LOST, SWAP, 10, 4),),
    ),
    Story(
        "a node that is blamed three times is set aside",
        when=(
            at(7).kill_rank(3, signal=7),
            at(12).kill_rank(3, signal=7),
            at(17).kill_rank(3, signal=7),
        ),
        then=(
            Expected(Reason.BUS_ERROR, IN_PLACE),
            Expected(Reason.BUS_ERROR, IN_PLACE),
            Expected(Reason.BUS_ERROR, SWAP),
        ),
        holds=(("it is told", lambda w: w.said(Reason.NODE_SET_ASIDE)),),
    ),
    Story(
        "ranks that do not end long after their grace cost their worker, not the run",
        when=(at(11).make_stubborn("r0n1"), at(12).exit_rank(3, 70, "ValueError: bad shape")),
        then=(Expected(ERROR, SWAP, 10, 2, "code"),),
    ),
)

TWICE = (
    Story(
        "two faults in a row, the second while the first is replayed, count only the steps that each cost",
        when=(at(14).kill_rank(0), at(12, attempt=2).kill_rank(1)),
        then=(Expected(KILLED, IN_PLACE, 10, 4), Expected(KILLED, IN_PLACE, 10, 2)),
    ),
    Story(
        "a rank is killed while the run starts",
        when=(starting(1).kill_rank(1),),
        then=(Expected(KILLED, IN_PLACE, resumed_at=0, lost=0),),
    ),
    Story(
        "a node dies while the run starts",
        when=(starting(1).kill_node("r1n0"),),
        then=(Expected(LOST, SWAP, 0, 0),),
    ),
    Story(
        "a node dies during a recovery from a killed rank",
        when=(at(12).kill_rank(0), starting(2).kill_node("r0n0")),
        then=(Expected(KILLED, IN_PLACE, 10, 2), Expected(LOST, SWAP, 10, 0)),
    ),
    Story(
        "a node dies between two attempts, before anything is placed on it",
        when=(at(12).kill_rank(0), between_attempts(1).kill_node("r0n0")),
        then=(Expected(KILLED, SWAP, 10, 2),),
    ),
)

HOLDS = (
    Story(
        "a budget is exhausted: held; resume forgives and the run finishes",
        given={"spec": spec(budgets=Budgets(software=Budget(1, HOUR_MS)))},
        when=(at(6).exit_rank(0, 70), at(11).exit_rank(0, 70), held().request(Ask.RESUME)),
        then=(Expected(ERROR, IN_PLACE, 5, 1), Expected(ERROR, IN_PLACE, 10, 1)),
        requests=(DONE,),
        holds=(("it was held for its budget", lambda w: w.said(Reason.BUDGET_EXHAUSTED)),),
    ),
    Story(
        "the trainer exits at once for ever: held for want of progress, whatever the budgets say",
        given={"broken": 70},
        when=(),
        then=(Expected(ERROR, IN_PLACE), Expected(ERROR, IN_PLACE), Expected(ERROR, Reason.NO_PROGRESS)),
        ends=Phase.HELD,
        because=Reason.NO_PROGRESS,
    ),
    Story(
        "a mistake in the configuration holds the run at once",
        given={"broken": 78},
        when=(),
        then=(Expected(Reason.CONFIGURATION_ERROR, Reason.CONFIGURATION_ERROR, blames="config"),),
        ends=Phase.HELD,
        because=Reason.CONFIGURATION_ERROR,
        attempts=1,
        holds=(("starting in vain is its cost", lambda w: w.incidents[1].lost_ms > w.incidents[1].cost.start > 0),),
    ),
    Story(
        "a mistake in the configuration holds the run even if a worker is lost at the same moment",
        when=(at(12).exit_rank(0, 78), at(12).kill_node("r1n1")),
        then=(Expected(Reason.CONFIGURATION_ERROR),),
        ends=Phase.HELD,
        because=Reason.CONFIGURATION_ERROR,
    ),
    Story(
        "data that cannot be used holds the run",
        given={"bad_data_at": 8},
        when=(),
        then=(Expected(Reason.DATA_ERROR, Reason.DATA_ERROR, blames="data"),),
        ends=Phase.HELD,
        because=Reason.DATA_ERROR,
    ),
    Story(
        "a loss that is not finite holds the run; a person goes back to an earlier step",
        given={"non_finite_at": 18},
        when=(held().set(non_finite_at=None), held().request(Ask.RESUME, 10)),
        then=(Expected(Reason.NON_FINITE_LOSS, Reason.NON_FINITE_LOSS),),
        requests=(DONE,),
        holds=(
            ("the rewind is not the fault's", lambda w: w.incidents[1].outcome is Outcome.SUPERSEDED),
            ("it says who went back", lambda w: w.incidents[1].action == "a person went back to step 10"),
            ("replay is not its cost", lambda w: w.incidents[1].cost.replay == 0 < w.memory.ledger.run.replay),
        ),
    ),
    Story(
        "a layout that does not fit is refused before anything starts",
        given={"checks": {Layout(1, 2, 1): "24 rows do not divide"}},
        when=(),
        ends=Phase.HELD,
        because=Reason.LAYOUT_REFUSED,
        attempts=0,
    ),
    Story(
        "a trainer that finds its configuration wrong when it is asked holds the run; mended, it is asked again",
        given={"check_fails": LayoutCheck("", error="warning: x\n\n--config nope: cannot read nope\n", exit_code=78)},
        when=(
            once(lambda w: w.memory.reason is Reason.CONFIGURATION_ERROR).set(check_fails=None),
            held().request(Ask.RESUME),
        ),
        requests=(DONE,),
        attempts=1,
        holds=(("it says what is wrong, in a line", lambda w: w.noted("warning: x --config nope: cannot read nope")),),
    ),
    Story(
        "a trainer that finds its data wrong when it is asked holds the run for its data",
        given={"check_fails": LayoutCheck("", error="shard 7 is no text", exit_code=65)},
        when=(),
        ends=Phase.HELD,
        because=Reason.DATA_ERROR,
        attempts=0,
    ),
    Story("a trainer that does not know the question is accepted", given={"checks": None}, when=(), attempts=1),
    Story(
        "a changed layout that is refused while an attempt trains does not disturb it, but no other one starts",
        when=(
            at(12).set(checks={Layout(2, 3, 1): "too many experts"}),
            at(12).change(layout=Layout(2, 3, 1), fingerprint="new"),
            at(16).kill_rank(0),
        ),
        then=(Expected(KILLED),),
        ends=Phase.HELD,
        because=Reason.LAYOUT_REFUSED,
        attempts=1,
    ),
    Story(
        "a changed layout is used by the next attempt",
        when=(at(12).change(layout=Layout(2, 3, 1), fingerprint="new"), at(16).kill_rank(0)),
        then=(Expected(KILLED, Reason.RESHAPED, 15, 1),),
        attempts=2,
    ),
    Story(
        "no step before the start deadline",
        given={"hangs_at_start": True, "spec": spec(startup_deadline_ms=20_000)},
        when=(starting(2).set(hangs_at_start=False),),
        then=(Expected(Reason.START_DEADLINE_PASSED, IN_PLACE, 0, 0),),
    ),
    Story(
        "a directory that cannot be surveyed holds the run until it can",
        given={"tree": lambda: Tree(unreadable="Permission denied")},
        when=(held().mend_tree(), held().request(Ask.RESUME)),
        requests=(DONE,),
    ),
)

CHECKPOINTS = (
    Story(
        "the newest checkpoint is damaged and the one before it is used",
        when=(at(12).damage_newest(), at(13).kill_rank(0)),
        then=(Expected(KILLED, IN_PLACE, resumed_at=5, lost=8),),
        holds=(("it was moved away, not deleted", lambda w: w.tree.set_aside == [Checkpoint(1, 10)]),),
    ),
    Story(
        "a checkpoint verifies, but a chunk of it fails at restore",
        when=(at(12).rot_newest(), at(13).kill_rank(0)),
        then=(Expected(KILLED, IN_PLACE, 10, 3), Expected(Reason.CHECKPOINT_DAMAGED, IN_PLACE, 5, 5, "storage")),
        holds=(("it was moved away", lambda w: w.tree.set_aside == [Checkpoint(1, 10)]),),
    ),
    Story(
        "a trainer that uses the contract's directories but writes no manifest is taken at its word, again and again",
        given={"tree": lambda: Tree(manifests=False)},
        when=(at(12).kill_rank(0), at(23).kill_rank(1)),
        then=(Expected(KILLED, IN_PLACE, resumed_at=10, lost=2), Expected(KILLED, IN_PLACE, resumed_at=20, lost=3)),
    ),
    Story(
        "a trainer without manifests is taken at its word with checkpoint.verify false, too",
        given={"tree": lambda: Tree(manifests=False), "spec": spec(verify=False)},
        when=(at(12).kill_rank(0),),
        then=(Expected(KILLED, IN_PLACE, resumed_at=10, lost=2),),
    ),
    Story(
        "all checkpoints are damaged: held, never silently from the beginning",
        when=(at(12).damage_all(), at(13).kill_rank(0)),
        then=(Expected(KILLED, Reason.CHECKPOINTS_GONE),),
        ends=Phase.HELD,
        because=Reason.CHECKPOINTS_GONE,
    ),
    Story(
        "all checkpoints are damaged and a person starts over",
        when=(at(12).damage_all(), at(13).kill_rank(0), held().request(Ask.RESUME, 0), stepping(2).kill_rank(0)),
        then=(Expected(KILLED, Reason.CHECKPOINTS_GONE), Expected(KILLED, IN_PLACE, 0)),
        requests=(DONE,),
    ),
    Story(
        "all checkpoints are damaged and a person brings one back",
        when=(
            at(12).damage_all(),
            at(13).kill_rank(0),
            once(lambda w: len(w.tree.set_aside) == 2).bring_back(Checkpoint(1, 5)),
            held().request(Ask.RESUME),
        ),
        then=(Expected(KILLED, IN_PLACE, 5, 8),),
        requests=(DONE,),
    ),
    Story(
        "the whole directory was wiped: held, not a loop of restores",
        when=(at(12).kill_rank(0), stepping(2).wipe_tree(), stepping(2).kill_rank(0)),
        then=(Expected(KILLED, IN_PLACE, 10), Expected(KILLED, Reason.CHECKPOINTS_GONE)),
        ends=Phase.HELD,
        because=Reason.CHECKPOINTS_GONE,
    ),
    Story(
        "a rank of an old attempt finishes its save late, and that is ignored",
        when=(at(12).kill_rank(0), stepping(2).late_commit(1, 14), stepping(2).kill_rank(1)),
        then=(Expected(KILLED, IN_PLACE, 10), Expected(KILLED, IN_PLACE, resumed_at=10)),
        holds=(("the late step is not on the lineage", lambda w: Checkpoint(1, 14) not in w.kept()),),
    ),
    Story(
        "memory is lost: attempt numbers do not come back and the lineage is rebuilt",
        when=(at(12).kill_rank(0), at(22).lose_memory()),
        then=(Expected(KILLED, IN_PLACE, 10, 2),),
        attempts=3,
        holds=(
            ("the lineage was rebuilt", lambda w: w.said(Reason.LINEAGE_REBUILT)),
            ("it went on from step 20", lambda w: w.memory.lineage[-1].parent == Checkpoint(2, 20)),
        ),
    ),
    Story(
        "memory is lost and every checkpoint is damaged: held",
        when=(at(12).damage_all(), at(12).lose_memory()),
        ends=Phase.HELD,
        because=Reason.CHECKPOINTS_GONE,
    ),
)

REQUESTS = (
    Story(
        "stop saves and suspends, resume goes on from there",
        when=(at(12).request(Ask.STOP), suspended().request(Ask.RESUME)),
        requests=(DONE, DONE),
        attempts=2,
        holds=(("nothing was lost", lambda w: w.memory.ledger.run.replay == 0 and _parent(w).step >= 12),),
    ),
    Story(
        "a trainer that says no hello but completes steps is asked to save, too",
        given={"says_hello": False},
        when=(at(12).request(Ask.STOP),),
        requests=(DONE,),
        ends=Phase.SUSPENDED,
        holds=(
            ("it saved", lambda w: w.kept()[-1].step > 12),
            ("the note says where it ended", lambda w: w.noted("attempt 1 ended at step 14, as asked")),
            ("it says where it goes on", lambda w: w.memory.message.startswith("suspended; goes on from step 14 with")),
        ),
    ),
    Story(
        "a trainer that neither says hello nor heeds the request is stopped soon, and what it loses is said",
        given={"says_hello": False, "heeds_stop": False, "total": 1000, "every": 50},
        when=(at(12).request(Ask.STOP),),
        requests=(DONE,),
        ends=Phase.SUSPENDED,
        holds=(
            ("30 s and the grace passed", lambda w: 50 < w.memory.high_step < 60),
            ("it says what was lost", lambda w: w.noted("without saving; step 50 was the last one saved")),
            ("it says where it goes on", lambda w: "goes on from step 50 (step 5" in w.memory.message),
        ),
    ),
    Story(
        "a run that is stopped before its first step has reached nothing and begins from the beginning",
        when=(starting(1).request(Ask.STOP),),
        requests=(DONE,),
        ends=Phase.SUSPENDED,
        holds=(
            ("the note says so", lambda w: w.noted("attempt 1 ended, as asked, before it completed a step")),
            ("it says where it goes on", lambda w: "suspended; goes on from the beginning with" in w.memory.message),
        ),
    ),
    Story(
        "spec.suspend saves and suspends, and setting it back goes on",
        when=(at(12).change(suspend=True), suspended().change(suspend=False)),
        attempts=2,
    ),
    Story(
        "resume with a step that exists goes back to it",
        when=(at(17).request(Ask.STOP), suspended().request(Ask.RESUME, 10)),
        requests=(DONE, DONE),
        holds=(("it went on from step 10", lambda w: _parent(w) == Checkpoint(1, 10)),),
    ),
    Story(
        "resume with a step that does not exist is held and says which do; a second one goes on",
        when=(at(17).request(Ask.STOP), suspended().request(Ask.RESUME, 11), held().request(Ask.RESUME, 15)),
        requests=(DONE, DONE, DONE),
        holds=(
            ("it says which there are", lambda w: any("there are: 1" in n.message for n in w.notes)),
            ("it went on from step 15", lambda w: _parent(w) == Checkpoint(1, 15)),
        ),
    ),
    Story(
        "checkpointNow is done once a later step is committed",
        when=(at(12).request(Ask.CHECKPOINT_NOW),),
        requests=(DONE,),
        holds=(("an extra step was saved", lambda w: any(c.step in (13, 14) for c in w.commits)),),
    ),
    Story(
        "checkpointNow is refused when its attempt dies before",
        when=(at(12).request(Ask.CHECKPOINT_NOW), at(12).kill_rank(0)),
        then=(Expected(KILLED),),
        requests=(REFUSED,),
    ),
    Story(
        "checkpointNow is refused while nothing trains",
        when=(at(12).request(Ask.STOP), suspended().request(Ask.CHECKPOINT_NOW)),
        requests=(DONE, REFUSED),
        ends=Phase.SUSPENDED,
    ),
    Story(
        "resume of a run that trains is refused",
        when=(at(12).request(Ask.RESUME),),
        requests=(REFUSED,),
        attempts=1,
    ),
    Story(
        "a run is suspended during a recovery, and its incident recovers after resume",
        when=(at(12).kill_rank(0), starting(2).request(Ask.STOP), suspended().request(Ask.RESUME)),
        then=(Expected(KILLED, IN_PLACE, 10, 2),),
        requests=(DONE, DONE),
        holds=(
            (
                "the time in which nobody wanted it to run is no cost",
                lambda w: (
                    w.incidents[1].cost.suspended > 0
                    and w.incidents[1].lost_ms == w.incidents[1].cost.total() - w.incidents[1].cost.suspended
                ),
            ),
        ),
    ),
    Story(
        "resume of a run that is held for capacity does no harm",
        given={"spec": spec(min_racks=2)},
        when=(at(12).kill_rack("r1"), held().request(Ask.RESUME), held().revive("r1")),
        then=(Expected(Reason.RACK_LOST, IN_PLACE, 10, 2),),
        requests=(DONE,),
    ),
    Story(
        "a fault while the run saves and stops still ends suspended",
        when=(at(12).request(Ask.STOP), saving().kill_rank(0)),
        requests=(DONE,),
        ends=Phase.SUSPENDED,
    ),
    Story(
        "a trainer that never said where its end is has stopped, not finished, when it exits 0 on a stop",
        given={"tells_total": False, "stop_code": 0},
        when=(at(12).request(Ask.STOP),),
        requests=(DONE,),
        ends=Phase.SUSPENDED,
    ),
)

ENDS = (
    Story(
        "a rank leaves first at the end and the others follow", given={"followers_at_end": True}, when=(), attempts=1
    ),
    Story(
        "ranks exit with 0 before the end",
        given={"exits_zero_at": 18},
        when=(once_said(Reason.EXITED_EARLY).set(exits_zero_at=None),),
        then=(Expected(Reason.EXITED_EARLY, IN_PLACE, 15, 2, "code"),),
    ),
    Story(
        "a node dies at the last step and the run still finishes",
        when=(at(39).kill_node("r0n0"),),
        then=(Expected(LOST, SWAP, 35, 4),),
    ),
)

SUPERVISOR = (
    Story("the supervisor is away for a while; the run trains on", when=(at(12).supervisor_away(8),), attempts=1),
    Story(
        "a new supervisor, to which the workers reconnect only after a while, fences nobody",
        when=(at(12).supervisor_away(3, reconnecting=3),),
        attempts=1,
        holds=(("nobody was fenced", lambda w: not w.fenced),),
    ),
    Story(
        "the supervisor is restarted during a recovery and does not fence healthy workers",
        when=(starting(1).kill_rank(1), stopping().supervisor_away(1, reconnecting=2)),
        then=(Expected(KILLED, IN_PLACE, 0, 0),),
        holds=(("nobody was fenced", lambda w: not w.fenced),),
    ),
    Story(
        "a rank dies while the supervisor is away",
        when=(at(12).kill_rank(0), from_the_start().supervisor_away(10)),
        then=(Expected(KILLED, IN_PLACE, 10, 2),),
        holds=(("it fenced nobody", lambda w: not w.fenced),),
    ),
)

STORIES = (*LADDER, *WORKERS, *TWICE, *HOLDS, *CHECKPOINTS, *REQUESTS, *ENDS, *SUPERVISOR)


def _parent(world: World) -> Checkpoint:
    parent = world.memory.lineage[-1].parent
    assert parent is not None
    return parent


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_a_story_ends_as_told(story: Story) -> None:
    world = story.play()
    story.check(world)
    book = world.memory.ledger
    assert book.run.total() == book.at_ms - book.started_ms
    if story.ends is Phase.SUCCEEDED:
        outcomes = {incident.outcome for incident in world.incidents.values()}
        assert outcomes <= {Outcome.RECOVERED, Outcome.SUPERSEDED}, world.story()


def test_a_rank_that_hangs_at_its_exit_does_not_keep_a_finished_run() -> None:
    world = World(total=10, never_leaves=2)
    for _ in range(30):
        world.tick()
    assert world.phase is Phase.RUNNING, "its peers may still be saving"
    deadline = world.log[-1].decision.requeue_after_ms
    assert deadline is not None, world.story()
    world.tick(deadline)
    for _ in range(5):
        world.tick()
    assert world.phase is Phase.SUCCEEDED, world.story()
    assert not world.incidents


def test_after_memory_was_lost_nothing_starts_while_ranks_of_an_earlier_attempt_live() -> None:
    world = World()
    while world.step < 12:
        world.tick()
    world.make_stubborn("r0n1")
    world.lose_memory()
    for _ in range(20):
        world.tick()
    assert world.memory.attempt is None, world.story()
    assert world.memory.message == "waiting for ranks of an earlier attempt to end on r0n1"
    world.make_docile("r0n1")
    for _ in range(8):
        world.tick()
    assert world.memory.attempt is not None
    assert (world.memory.attempt.number, world.phase) == (2, Phase.RUNNING), world.story()
