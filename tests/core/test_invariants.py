"""What holds whatever happens: a machine that draws faults and looks at every pass; `decide` on any input at all."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import Phase as Step
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from supervisor.api.records import from_json, to_json
from supervisor.core.actions import Command, SendOrder
from supervisor.core.decide import decide
from supervisor.core.decision import Decision, Pass
from supervisor.core.launching import nodes_set_aside
from supervisor.core.memory import Memory, Phase, Stage
from supervisor.core.observation import Ask, Observation
from supervisor.core.reasons import Reason
from supervisor.core.spec import Budget, Budgets
from tests.builders import fleet, spec
from tests.core.anything import anything
from tests.core.world import Seen, World

HOUR_MS = 3_600_000
NODES = st.sampled_from([node.name for node in fleet()])
RACKS = st.sampled_from(["r0", "r1"])
RANKS = st.integers(0, 3)
SPECS = (
    spec(),
    spec(min_racks=2),
    spec(racks=1, nodes_per_rack=3),
    spec(ranks_per_node=2, keep_newest=1, node_faults=Budget(2, HOUR_MS)),
    spec(check_layouts=False, budgets=Budgets(hardware=Budget(2, 60_000), unknown=Budget(1, HOUR_MS))),
)
QUIET_PASSES = 60  # well beyond every deadline that the world's specs have, once nothing fails any more


class AnyFault(RuleBasedStateMachine):
    """Between the rules every pass is looked at; at the end the faults stop and the run must find its way."""

    @initialize(
        spec=st.sampled_from(SPECS), unfenced=st.booleans(), follows=st.booleans(), total=st.sampled_from([30, 10_000])
    )
    def begin(self, spec: object, unfenced: bool, follows: bool, total: int) -> None:
        self.world = World(spec=spec, fence_needs_sync=unfenced, followers_at_end=follows, total=total)  # type: ignore[arg-type]

    # ---- the rules

    @rule(passes=st.integers(1, 12), ms=st.sampled_from([1, 200, 1000, 1000, 6000]))
    def watch(self, passes: int, ms: int) -> None:
        for _ in range(passes):
            self.look(self.world.tick(ms))

    @rule(rank=RANKS, signal=st.sampled_from([9, 7, 11, 6]))
    def kill_rank(self, rank: int, signal: int) -> None:
        self.world.kill_rank(rank, signal)

    @rule(rank=RANKS, code=st.sampled_from([0, 1, 65, 70, 74, 75, 78]))
    def exit_rank(self, rank: int, code: int) -> None:
        self.world.exit_rank(rank, code)

    @rule(
        node=NODES,
        verb=st.sampled_from(["kill_worker", "kill_node", "cut_off", "reconnect", "revive", "make_stubborn"]),
    )
    def upset_node(self, node: str, verb: str) -> None:
        getattr(self.world, verb)(node)

    @rule(rack=RACKS, verb=st.sampled_from(["kill_rack", "revive"]))
    def upset_rack(self, rack: str, verb: str) -> None:
        getattr(self.world, verb)(rack)

    @rule(verb=st.sampled_from(["damage_newest", "rot_newest", "damage_all", "wipe_tree"]))
    def upset_checkpoints(self, verb: str) -> None:
        getattr(self.world, verb)()

    @rule(attempt=st.integers(1, 4), step=st.integers(1, 30))
    def late_commit(self, attempt: int, step: int) -> None:
        current = self.world.memory.attempt.number if self.world.memory.attempt else attempt + 1
        if attempt in self.world.tree.attempts and attempt < current:
            self.world.late_commit(attempt, step)

    @rule(ask=st.sampled_from(list(Ask)), step=st.one_of(st.none(), st.integers(0, 20)))
    def request(self, ask: Ask, step: int | None) -> None:
        self.world.request(ask, step)

    @rule(ticks=st.integers(1, 8), reconnecting=st.integers(0, 3))
    def supervisor_away(self, ticks: int, reconnecting: int) -> None:
        before = len(self.world.log)
        self.world.supervisor_away(ticks, reconnecting)
        for seen in self.world.log[before:]:
            self.look(seen.decision, seen)

    @rule(at=st.one_of(st.none(), st.integers(1, 30)), broken=st.sampled_from([None, None, 70, 78]))
    def upset_trainer(self, at: int | None, broken: int | None) -> None:
        self.world.set(non_finite_at=at, broken=broken)

    @rule(suspend=st.booleans())
    def suspend(self, suspend: bool) -> None:
        self.world.change(suspend=suspend)

    @precondition(lambda self: self.world.memory.revision > 20)
    @rule()
    def lose_memory(self) -> None:
        self.world.lose_memory()

    # ---- what every pass must show

    def look(self, decision: Decision, seen: Seen | None = None) -> None:
        seen = seen or self.world.log[-1]
        self.one_live_attempt(seen)
        self.attempt_numbers_are_new(seen)
        self.everything_is_explained(decision)
        self.time_adds_up(decision.memory)
        self.a_second_look_changes_nothing(seen)
        self.something_wakes_it(seen)
        assert not set_aside_and_placed(seen), "a node is placed and set aside at once"

    def one_live_attempt(self, seen: Seen) -> None:
        for worker in self.world.workers.values():
            assert len(worker.live_gangs()) <= 1, f"two gangs live on {worker.node}"
        orders = [a.order.gang for a in seen.decision.actions if isinstance(a, SendOrder) and a.order.gang]
        assert len({gang.attempt for gang in orders if gang.command is Command.RUN}) <= 1, "two attempts are to run"

    def attempt_numbers_are_new(self, seen: Seen) -> None:
        before, attempt = seen.memory.attempt, seen.decision.memory.attempt
        if attempt is None or (before is not None and before.number == attempt.number):
            return
        fencing = set(seen.decision.memory.fencing)
        for worker in seen.obs.workers:
            if worker.connected and (worker.node, worker.session) not in fencing:
                assert attempt.number > worker.newest_attempt, "an attempt number came back"
                assert all(gang.ended for gang in worker.gangs), f"ranks still live on {worker.node}"
        assert before is None
        assert attempt.number > seen.memory.newest_attempt

    def everything_is_explained(self, decision: Decision) -> None:
        assert all(note.message for note in decision.notes)
        assert decision.memory.message, f"no sentence for {decision.memory.reason}"
        hold = decision.memory.hold
        assert hold is None or (hold.message and hold.way_out), "a person is told neither why nor what to do"
        for incident in decision.incidents:
            assert incident.verdict is None or incident.verdict.because
            assert incident.steps_lost is None or incident.steps_lost >= 0

    def time_adds_up(self, memory: Memory) -> None:
        book = memory.ledger
        for times in (book.run, book.attempt):
            assert all(getattr(times, field.name) >= 0 for field in fields(times)), "a category is negative"
        assert book.run.total() == book.at_ms - book.started_ms, "the categories do not add up to the elapsed time"

    def a_second_look_changes_nothing(self, seen: Seen) -> None:
        started = seen.memory.attempt is None and seen.decision.memory.attempt is not None
        obs = replace(seen.obs, away_ms=0, contract_spoken=seen.obs.contract_spoken and not started)
        again = decide(seen.spec, seen.decision.memory, obs, seen.now)
        before, after = seen.decision.memory, again.memory
        names = [field.name for field in fields(Memory)]
        changed = {n: (getattr(before, n), getattr(after, n)) for n in names if getattr(before, n) != getattr(after, n)}
        assert not changed, f"a settled memory changed: {changed}"
        assert set(again.actions) <= set(seen.decision.actions), "a settled state asked for something new"

    def something_wakes_it(self, seen: Seen) -> None:
        """A deadline in the past would spin; none at all would sleep through a silence."""
        memory, after = seen.decision.memory, seen.decision.requeue_after_ms
        attempt = memory.attempt
        if attempt is not None and attempt.stage is not Stage.STEPPING:
            assert after is not None, f"nothing wakes a run that is {attempt.stage.value}"

    # ---- and in the end

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        world = self.world
        world.set(non_finite_at=None, broken=None, fence_needs_sync=False)
        world.change(suspend=False)
        for node in world.nodes:
            world.revive(node)
            world.reconnect(node)
            world.make_docile(node)
        for resumed in range(6):  # a person follows the way out, as often as there is another reason to hold
            self.rest()
            if world.phase not in (Phase.HELD, Phase.SUSPENDED):
                break
            gone = world.memory.reason is Reason.CHECKPOINTS_GONE or resumed > 2  # by then they have read the logs
            world.request(Ask.RESUME, 0 if gone else None)
        before = world.step
        self.watch(3, 1000)
        assert world.phase is Phase.SUCCEEDED or world.step > before, f"it does not train\n{world.story()}"

    def rest(self) -> None:
        for _ in range(QUIET_PASSES):
            self.look(self.world.tick())
            if self.world.phase in (Phase.HELD, Phase.SUSPENDED, Phase.SUCCEEDED) and not self.world.memory.fencing:
                held = self.world.memory.hold
                if held is None or held.reason is not Reason.INSUFFICIENT_CAPACITY:
                    return


def set_aside_and_placed(seen: Seen) -> set[str]:
    memory = seen.decision.memory
    placed = memory.attempt.placement.nodes if memory.attempt else ()
    return set(placed) & nodes_set_aside(Pass(seen.spec, seen.obs, seen.now, memory))


UNSHRUNK = (Step.explicit, Step.generate)  # shrinking takes minutes, and the story is printed anyway


def test_the_invariants_hold_under_any_faults() -> None:
    run_state_machine_as_test(AnyFault, settings=settings(max_examples=40, stateful_step_count=25, phases=UNSHRUNK))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_invariants_hold_under_very_many_faults() -> None:
    run_state_machine_as_test(AnyFault, settings=settings(max_examples=800, stateful_step_count=50, phases=UNSHRUNK))


ANY_PASS = {"memory": anything(Memory), "obs": anything(Observation), "now": st.integers(0, 200_000)}


def decides_on_anything(memory: Memory, obs: Observation, now: int, chosen: object) -> None:
    first = decide(chosen, memory, obs, now)  # type: ignore[arg-type]
    assert decide(chosen, memory, obs, now) == first, "the same input decided twice differs"  # type: ignore[arg-type]
    assert all(note.message for note in first.notes)


@given(chosen=st.sampled_from(SPECS), **ANY_PASS)
@settings(max_examples=150)
def test_decide_never_raises(memory: Memory, obs: Observation, now: int, chosen: object) -> None:
    decides_on_anything(memory, obs, now, chosen)


@pytest.mark.long
@pytest.mark.timeout(1800)
@given(chosen=st.sampled_from(SPECS), **ANY_PASS)
@settings(max_examples=5000)
def test_decide_never_raises_on_very_many_inputs(memory: Memory, obs: Observation, now: int, chosen: object) -> None:
    decides_on_anything(memory, obs, now, chosen)


def test_the_decision_log_read_back_from_json_decides_the_same() -> None:
    world = World()
    for event, argument in (("kill_node", "r0n1"), ("kill_rank", 0), ("kill_rack", "r1"), ("cut_off", "r0n2")):
        for _ in range(14):
            world.tick()
        getattr(world, event)(argument)
    assert len(world.incidents) >= 2
    for seen in world.log:
        memory = from_json(Memory, to_json(seen.memory))
        obs = from_json(Observation, to_json(seen.obs))
        again = decide(from_json(type(seen.spec), to_json(seen.spec)), memory, obs, seen.now)
        assert to_json(again) == to_json(seen.decision)
