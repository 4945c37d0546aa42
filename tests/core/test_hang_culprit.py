"""Who is behind a hang, over a table of evidence: named where it can be, and "unknown" said plainly where not."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from supervisor.core.hang import name_culprit, settled, standstill
from supervisor.core.observation import Exit, Rank, RankEvidence, RankState
from supervisor.core.reasons import Reason
from tests.builders import TWO_RACKS

WAITS = ("collective.py:7 wait", "loop.py:40 step")
SPINS = ("user.py:3 forever", "loop.py:31 load")


def rank(number: int, entered: int = 21, completed: int = 20, phase: str = "train") -> Rank:
    return Rank(number, RankState.RUNNING, phase, entered, completed)


def shows(number: int, state: str = "S", cpu: float | None = 0.0, stack: tuple[str, ...] = WAITS) -> RankEvidence:
    return RankEvidence(number, state, cpu, stack)


ALL = tuple(rank(number) for number in range(4))
ASLEEP = tuple(shows(number) for number in range(4))
SPINNING = tuple(shows(number, "R", 1.0) for number in range(4))


def but(*changed: Rank) -> tuple[Rank, ...]:
    """All four ranks wait in step 21, but for these."""
    return tuple(next((c for c in changed if c.rank == one.rank), one) for one in ALL)


def seen(*changed: RankEvidence, others: tuple[RankEvidence, ...] = ASLEEP) -> tuple[RankEvidence, ...]:
    return tuple(next((c for c in changed if c.rank == one.rank), one) for one in others)


@dataclass(frozen=True)
class Case:
    sentence: str
    ranks: tuple[Rank, ...]
    evidence: tuple[RankEvidence, ...]
    reason: Reason
    blame: str
    phase: str = "step"

    def __str__(self) -> str:
        return self.sentence


CASES = (
    Case("a stopped rank", ALL, seen(shows(2, "T", 0, ())), Reason.RANK_STOPPED, "node r1n0"),
    Case("a stopped rank 0", ALL, seen(shows(0, "T", 0, ())), Reason.RANK_STOPPED, "node r0n0"),
    Case("a rank held by a debugger", ALL, seen(shows(3, "t", 0)), Reason.RANK_STOPPED, "node r1n1"),
    Case(
        "a stopped rank whose peers spin",
        but(rank(1, entered=20)),
        seen(shows(1, "T", 0), others=SPINNING),
        Reason.RANK_STOPPED,
        "node r0n1",
    ),
    Case("two stopped ranks of one rack", ALL, seen(shows(2, "T"), shows(3, "T")), Reason.RANK_STOPPED, "rack r1"),
    Case("stopped ranks everywhere", ALL, seen(shows(0, "T"), shows(3, "T")), Reason.RANK_STOPPED, "unknown"),
    Case("a rank blocked in the kernel", ALL, seen(shows(1, "D")), Reason.RANK_BLOCKED, "node r0n1"),
    Case(
        "a rank that spins in Python before the step",
        but(rank(2, entered=20)),
        seen(shows(2, "R", 1.0, SPINS)),
        Reason.RANK_LATE,
        "node r1n0",
    ),
    Case(
        "a late rank asleep",
        but(rank(1, entered=20)),
        seen(shows(1, "S", 0, SPINS), others=SPINNING),
        Reason.RANK_LATE,
        "node r0n1",
    ),
    Case("a late rank without any evidence", but(rank(3, entered=20)), (), Reason.RANK_LATE, "node r1n1"),
    Case(
        "both ranks of a rack late",
        but(rank(2, entered=20), rank(3, entered=20)),
        ASLEEP,
        Reason.RANK_LATE,
        "rack r1",
    ),
    Case("late ranks in both racks", but(rank(0, 20), rank(3, 20)), ASLEEP, Reason.RANK_LATE, "unknown"),
    Case(
        "a rank still in its save",
        but(rank(1, entered=20, phase="save")),
        ASLEEP,
        Reason.RANK_IN_ANOTHER_PHASE,
        "node r0n1",
        phase="save",
    ),
    Case(
        "a rank still in its evaluation",
        but(rank(0, entered=20, phase="eval")),
        ASLEEP,
        Reason.RANK_IN_ANOTHER_PHASE,
        "node r0n0",
        phase="eval",
    ),
    Case(
        "a rank still restoring",
        tuple(rank(n, 0, 0, "restore" if n == 3 else "compile") for n in range(4)),
        SPINNING,
        Reason.RANK_IN_ANOTHER_PHASE,
        "node r1n1",
        phase="restore",
    ),
    Case(
        "a rank still importing",
        tuple(rank(n, 0, 0, "" if n == 2 else "init") for n in range(4)),
        ASLEEP,
        Reason.RANK_IN_ANOTHER_PHASE,
        "node r1n0",
        phase="",
    ),
    Case(
        "a rack whose collectives are behind",
        but(rank(2, 21, 19), rank(3, 21, 19)),
        ASLEEP,
        Reason.RACK_BEHIND,
        "rack r1",
    ),
    Case(
        "a rank that uses no CPU while its peers spin",
        ALL,
        seen(shows(1, "S", 0.0), others=SPINNING),
        Reason.RANK_IDLE,
        "node r0n1",
    ),
    Case("all entered, all asleep", ALL, ASLEEP, Reason.HUNG_IN_STEP, "unknown"),
    Case("all entered, all spin", ALL, SPINNING, Reason.HUNG_IN_STEP, "unknown"),
    Case(
        "all entered, one at another place in its program",
        ALL,
        seen(shows(2, "S", 0.0, SPINS)),
        Reason.HUNG_IN_STEP,
        "unknown",
    ),
    Case("all entered, and no worker answers", ALL, (), Reason.HUNG_IN_STEP, "unknown"),
    Case(
        "all restoring",
        tuple(rank(n, 0, 0, "restore") for n in range(4)),
        ASLEEP,
        Reason.HUNG_IN_PHASE,
        "unknown",
        phase="restore",
    ),
)


def judged(case: Case) -> tuple[Reason, str]:
    ranks = [(TWO_RACKS.node_of(one.rank), one) for one in case.ranks]
    verdict = name_culprit(standstill(case.phase, 9_000, ranks, TWO_RACKS, case.evidence))
    return verdict.reason, verdict.blame


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_culprit_of(case: Case) -> None:
    assert judged(case) == (case.reason, case.blame)


def test_only_a_stopped_process_settles_it_before_patience_ends() -> None:
    early = {
        str(case)
        for case in CASES
        if settled(
            standstill(case.phase, 0, [(TWO_RACKS.node_of(r.rank), r) for r in case.ranks], TWO_RACKS, case.evidence)
        )
    }
    assert early == {str(case) for case in CASES if case.reason is Reason.RANK_STOPPED}


def test_peers_with_equal_stacks_are_one_line_and_the_odd_one_comes_first() -> None:
    ranks = [(TWO_RACKS.node_of(one.rank), one) for one in ALL]
    verdict = name_culprit(standstill("step", 9_000, ranks, TWO_RACKS, seen(shows(2, "S", 0.0, SPINS))))
    assert verdict.evidence == (
        "rank 2: step 21 entered, at user.py:3 forever < loop.py:31 load",
        "3 ranks: step 21 entered, at collective.py:7 wait < loop.py:40 step",
    )


def test_ranks_that_have_ended_are_no_suspects() -> None:
    gone = Rank(1, RankState.EXITED, "train", 20, 20, Exit(0, None, False, 0))
    ranks = [(TWO_RACKS.node_of(one.rank), one) for one in but(gone)]
    assert name_culprit(standstill("step", 9_000, ranks, TWO_RACKS, ASLEEP)).blame == "unknown"
