"""What the core counts: budgets, the lineage of checkpoints, retention and the ledger."""

from __future__ import annotations

import pytest

from supervisor.core import budget, ledger
from supervisor.core.budget import Charge
from supervisor.core.decision import Pass
from supervisor.core.ledger import Category
from supervisor.core.lineage import Ancestor, Candidate, candidates, chain, damaged_on_lineage, extend, rebuild
from supervisor.core.memory import Attempt, Memory, Stage
from supervisor.core.observation import Checkpoint, Observation, StepState, Survey, SurveyedStep
from supervisor.core.spec import Budget, Budgets, Cause
from supervisor.core.timekeeping import account_time
from supervisor.core.watching import retained
from tests.builders import START_MS, TWO_RACKS, memory, spec

# ---- budgets


@pytest.mark.parametrize(
    ("at", "now", "counted"),
    [((0,), 999, 1), ((0,), 1000, 0), ((0, 500, 900), 1200, 2), ((0, 1, 2), 2, 3), ((), 5, 0)],
)
def test_a_charge_counts_until_its_window_has_passed(at: tuple[int, ...], now: int, counted: int) -> None:
    charges = tuple(Charge(Cause.SOFTWARE, ms) for ms in at)
    assert budget.used(charges, Cause.SOFTWARE, Budget(5, 1000), now) == counted
    assert budget.used(charges, Cause.HARDWARE, Budget(5, 1000), now) == 0


def test_a_budget_of_two_grants_two_faults_and_not_a_third() -> None:
    budgets = Budgets(software=Budget(2, 1000))
    two = (Charge(Cause.SOFTWARE, 0), Charge(Cause.SOFTWARE, 1))
    assert not budget.exhausted(two, Cause.SOFTWARE, budgets, 10)
    assert budget.exhausted((*two, Charge(Cause.SOFTWARE, 2)), Cause.SOFTWARE, budgets, 10)
    assert not budget.exhausted((*two, Charge(Cause.SOFTWARE, 2)), Cause.SOFTWARE, budgets, 1000)


def test_a_cause_without_a_budget_is_never_exhausted() -> None:
    charges = tuple(Charge(Cause.CONFIG, 0) for _ in range(50))
    assert not budget.exhausted(charges, Cause.CONFIG, Budgets(), 1)


def test_a_node_is_set_aside_while_its_faults_are_in_the_window() -> None:
    charges = (*(Charge(Cause.HARDWARE, ms, "r0n0") for ms in (0, 400, 800)), Charge(Cause.HARDWARE, 800, "r0n1"))
    assert budget.set_aside(charges, Budget(3, 1000), 900) == {"r0n0"}
    assert budget.set_aside(charges, Budget(3, 1000), 1000) == frozenset()


def test_charges_are_bounded_and_the_newest_stay() -> None:
    charges: tuple[Charge, ...] = ()
    for ms in range(budget.MAX_CHARGES + 5):
        charges = budget.charged(charges, Charge(Cause.UNKNOWN, ms))
    assert len(charges) == budget.MAX_CHARGES
    assert charges[-1].at_ms == budget.MAX_CHARGES + 4


# ---- lineage: attempt 1 to step 20, attempt 2 from a1:10, attempt 4 from a2:15 (3 committed nothing)

LINEAGE = (Ancestor(1, None), Ancestor(2, Checkpoint(1, 10)), Ancestor(4, Checkpoint(2, 15)))


def survey(
    *steps: tuple[int, int], damaged: tuple[tuple[int, int], ...] = (), bare: tuple[tuple[int, int], ...] = ()
) -> Survey:
    """`bare`: without a manifest."""
    parents = {ancestor.attempt: ancestor.parent for ancestor in LINEAGE}
    states = [(pair, StepState.VERIFIED) for pair in steps] + [(pair, StepState.DAMAGED) for pair in damaged]
    states += [(pair, StepState.UNFINISHED) for pair in bare]
    shown = (SurveyedStep(a, s, state, parents.get(a)) for (a, s), state in states)
    return Survey("s", tuple(shown), 9)


def offered(*known: Candidate, surveyed: Survey, bad: tuple[Checkpoint, ...] = ()) -> list[str]:
    return [str(candidate.checkpoint) for candidate in candidates(LINEAGE, surveyed, known, bad)]


EVERYTHING = ((1, 5), (1, 10), (1, 20), (2, 15), (2, 18), (3, 30), (4, 25))


def test_only_steps_of_the_lineage_are_offered_newest_first() -> None:
    assert offered(surveyed=survey(*EVERYTHING)) == ["a4:25", "a2:15", "a1:10", "a1:5"]


def test_what_is_known_to_be_damaged_is_not_offered_though_it_verifies() -> None:
    assert offered(surveyed=survey(*EVERYTHING), bad=(Checkpoint(4, 25),))[0] == "a2:15"


def test_a_trainer_without_manifests_is_taken_at_its_word() -> None:
    said = (Candidate(Checkpoint(1, 10), False), Candidate(Checkpoint(4, 25), False))
    assert offered(*said, surveyed=survey()) == ["a4:25", "a1:10"]
    assert not any(candidate.verified for candidate in candidates(LINEAGE, survey(), said, ()))
    in_our_directories = survey(bare=((1, 10), (1, 20), (4, 25), (4, 30)))
    assert offered(*said, surveyed=in_our_directories) == ["a4:25", "a1:10"], "4/30 was never said to be committed"


def test_a_trainer_that_writes_manifests_is_not_taken_at_its_word() -> None:
    said = Candidate(Checkpoint(4, 25), False)
    assert offered(said, surveyed=survey((1, 10))) == ["a1:10"]
    assert offered(said, Candidate(Checkpoint(1, 10), True), surveyed=survey()) == []
    assert offered(said, surveyed=survey(damaged=((1, 10),), bare=((4, 25),))) == []


def test_damage_off_the_lineage_is_none_of_our_business() -> None:
    found = damaged_on_lineage(LINEAGE, survey(damaged=((1, 5), (1, 20), (3, 30), (4, 25))))
    assert [(step.attempt, step.step) for step in found] == [(1, 5), (4, 25)]


def test_a_lineage_is_rebuilt_from_the_manifests() -> None:
    assert rebuild(survey((1, 10), (2, 15), (4, 25))) == LINEAGE
    assert rebuild(survey((1, 10), damaged=((4, 25),))) == (Ancestor(1, None),)
    assert rebuild(survey(damaged=((1, 10),))) == (Ancestor(1, None),)
    assert rebuild(survey()) == ()


def test_going_back_drops_what_the_run_no_longer_descends_from() -> None:
    assert extend(LINEAGE, 5, Checkpoint(1, 5)) == (Ancestor(1, None), Ancestor(5, Checkpoint(1, 5)))
    assert extend(LINEAGE, 5, None) == (Ancestor(5, None),)


def test_a_lineage_that_bites_its_tail_ends() -> None:
    circle = (Ancestor(1, Checkpoint(2, 1)), Ancestor(2, Checkpoint(1, 1)))
    assert list(chain(circle)) == [(2, None), (1, 1)]


# ---- retention


def keeping(steps: range, parent: Checkpoint | None = None, **limits: int) -> tuple[str, ...]:
    attempt = Attempt(2, TWO_RACKS, parent, "", (), 0, Stage.STEPPING, 0)
    kept = tuple(Candidate(Checkpoint(2, step), True) for step in steps)
    older = tuple(Candidate(Checkpoint(1, step), True) for step in (5, 10, 20))
    lineage = (Ancestor(1, None), Ancestor(2, parent)) if parent else (Ancestor(2, None),)
    remembered = memory(attempt=attempt, lineage=lineage, checkpoints=(*older, *kept))
    return tuple(str(c) for c in retained(Pass(spec(**limits), Observation(), START_MS, remembered)))


def test_the_newest_and_every_so_many_steps_are_kept() -> None:
    assert keeping(range(10, 60, 10), keep_newest=2) == ("a2:40", "a2:50")
    assert keeping(range(10, 60, 10), keep_newest=1, keep_every_steps=20) == ("a2:20", "a2:40", "a2:50")


def test_what_the_attempt_started_from_is_kept_and_what_it_left_behind_is_not() -> None:
    assert keeping(range(15, 35, 5), Checkpoint(1, 10), keep_newest=2) == ("a1:10", "a2:25", "a2:30")
    assert keeping(range(0), Checkpoint(1, 10), keep_newest=3) == ("a1:5", "a1:10")


# ---- ledger


def test_time_that_is_moved_is_neither_made_nor_lost() -> None:
    book = ledger.account(ledger.opened(0), Category.TRAIN, 100)
    book = ledger.moved(book, Category.TRAIN, Category.DETECT, 30)
    assert (book.run.train, book.run.detect, book.run.total()) == (70, 30, 100)
    book = ledger.moved(book, Category.TRAIN, Category.DETECT, 500)
    assert (book.run.train, book.run.detect) == (0, 100)
    assert ledger.moved(book, Category.DETECT, Category.TRAIN, -5) == book


def accounted(before: Memory, now: int, away: int = 0) -> Memory:
    return account_time(Pass(spec(), Observation(away_ms=away), now, before)).memory


def test_a_clock_that_goes_back_leaves_the_books_closed() -> None:
    book = accounted(accounted(accounted(memory(), START_MS + 500), START_MS - 2000), START_MS - 1000).ledger
    assert book.run.total() == 1500 == book.at_ms - book.started_ms


def test_time_in_which_nobody_watched_is_unattributed_until_a_step_explains_it() -> None:
    book = accounted(memory(), START_MS + 5000, away=4000).ledger
    assert (book.run.unattributed, book.run.place) == (4000, 1000)


def test_goodput_is_train_over_elapsed() -> None:
    book = ledger.opened(0)
    assert book.goodput() is None
    book = ledger.account(ledger.account(book, Category.TRAIN, 75), Category.STOP, 25)
    assert book.goodput() == 0.75
