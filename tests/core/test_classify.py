"""The root cause of a gang's fault: a row a rule, and a row a way to follow."""

from __future__ import annotations

import pytest

from supervisor.core.classify import classify
from supervisor.core.gang_fault import GangFault
from supervisor.core.reasons import Reason
from supervisor.core.spec import Cause
from tests.builders import ended, fault, follower

Row = tuple[str, GangFault, Cause, Reason, str]
HARDWARE, SOFTWARE, UNKNOWN = Cause.HARDWARE, Cause.SOFTWARE, Cause.UNKNOWN
FOLLOWERS = (follower(1), follower(2), follower(3))

ROOTS: tuple[Row, ...] = (
    ("a node is lost", fault(*FOLLOWERS, lost=("r0n0",)), HARDWARE, Reason.NODE_LOST, "node r0n0"),
    ("a rack is lost", fault(lost=("r1n0", "r1n1")), HARDWARE, Reason.RACK_LOST, "rack r1"),
    ("nodes of two racks are lost", fault(lost=("r0n0", "r1n1")), HARDWARE, Reason.NODE_LOST, "node r0n0"),
    ("a worker came back empty", fault(restarted=("r0n1",)), HARDWARE, Reason.WORKER_RESTARTED, "node r0n1"),
    ("a worker refuses", fault(refusals=(("r0n1", "disk full"),)), UNKNOWN, Reason.RANKS_REFUSED, "node r0n1"),
    (
        "a loss is not finite",
        fault(ended(0, 70, alarm="non-finite-loss")),
        SOFTWARE,
        Reason.NON_FINITE_LOSS,
        "code",
    ),
    (
        "a checkpoint is damaged",
        fault(ended(0, 74, alarm="checkpoint-damaged")),
        Cause.STORAGE,
        Reason.CHECKPOINT_DAMAGED,
        "storage",
    ),
    (
        "a checkpoint is of another model",
        fault(ended(0, 78, alarm="checkpoint-foreign")),
        Cause.CONFIG,
        Reason.CHECKPOINT_FOREIGN,
        "config",
    ),
    ("78", fault(ended(0, 78), *FOLLOWERS), Cause.CONFIG, Reason.CONFIGURATION_ERROR, "config"),
    ("65", fault(ended(0, 65), *FOLLOWERS), Cause.DATA, Reason.DATA_ERROR, "data"),
    ("74", fault(ended(0, 74), *FOLLOWERS), Cause.STORAGE, Reason.STORAGE_ERROR, "storage"),
    ("70", fault(ended(0, 70), *FOLLOWERS), SOFTWARE, Reason.PROGRAM_ERROR, "code"),
    ("75 of its own accord", fault(ended(0, 75), *FOLLOWERS), UNKNOWN, Reason.RESTART_REQUESTED, "unknown"),
    ("SIGKILL", fault(ended(0, signal=9), *FOLLOWERS), UNKNOWN, Reason.KILLED_FROM_OUTSIDE, "unknown"),
    ("SIGBUS", fault(ended(2, signal=7)), HARDWARE, Reason.BUS_ERROR, "node r1n0"),
    ("SIGSEGV", fault(ended(0, signal=11)), SOFTWARE, Reason.KILLED_BY_SIGNAL, "code"),
    ("a signal without a name", fault(ended(0, signal=40)), SOFTWARE, Reason.KILLED_BY_SIGNAL, "code"),
    ("exit 1", fault(ended(0, 1, says="ValueError: x")), SOFTWARE, Reason.PROGRAM_ERROR, "code"),
    ("exit 0 too early", fault(ended(0, 0), step=5, total_steps=9), SOFTWARE, Reason.EXITED_EARLY, "code"),
    ("no step in time", fault(start_deadline_passed=True), UNKNOWN, Reason.START_DEADLINE_PASSED, "unknown"),
    ("followers alone", fault(*FOLLOWERS), UNKNOWN, Reason.NO_ROOT_FOUND, "unknown"),
    ("a mistake in the config beats a lost node", fault(ended(0, 78), lost=("r1n1",)), Cause.CONFIG,
     Reason.CONFIGURATION_ERROR, "config"),
    ("a non-finite loss beats a lost node", fault(ended(0, 70, alarm="non-finite-loss"), lost=("r1n1",)), SOFTWARE,
     Reason.NON_FINITE_LOSS, "code"),
    ("a lost node beats what its peers say of it", fault(ended(0, 70, says="timeout"), lost=("r1n1",)), HARDWARE,
     Reason.NODE_LOST, "node r1n1"),
    ("the config beats an earlier program error", fault(ended(0, 70, at=1), ended(1, 78, at=2)), Cause.CONFIG,
     Reason.CONFIGURATION_ERROR, "config"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "seen", "cause", "reason", "blame"), ROOTS, ids=[row[0] for row in ROOTS])
def test_a_fault_has_the_root_cause(name: str, seen: GangFault, cause: Cause, reason: Reason, blame: str) -> None:
    verdict = classify(seen)
    assert (verdict.cause, verdict.reason, verdict.blame) == (cause, reason, blame)
    assert verdict.because
    assert 0 <= verdict.confidence <= 1


FOLLOWING = (
    ("we stopped it", ended(1, signal=15, by_us=True), True),
    ("it says that a peer failed", ended(1, 75, alarm="peer-failed"), True),
    ("it lost the coordination service", ended(1, signal=6, says="E: Coordination service agent: task 0 died"), True),
    ("its connection was reset", ended(1, 1, says="gloo: Connection reset by peer"), True),
    ("its connection was closed", ended(1, 75, says="Connection closed by peer"), True),
    ("it aborted for a reason of its own", ended(1, signal=6, says="double free or corruption"), False),
    ("it was killed", ended(1, signal=9, says="connection reset by peer"), False),
    ("it found a mistake in its configuration", ended(1, 78, says="broken pipe"), False),
    ("it failed by itself", ended(1, 1, says="IndexError"), False),
)


@pytest.mark.parametrize(("name", "end", "follows"), FOLLOWING, ids=[row[0] for row in FOLLOWING])
def test_a_rank_follows_only_when_another_was_first(name: str, end: object, follows: bool) -> None:
    assert end.is_follower is follows  # type: ignore[attr-defined]


def test_the_earliest_of_several_roots_is_named_and_the_followers_are_counted() -> None:
    verdict = classify(fault(ended(2, signal=9, at=20), ended(0, signal=9, at=10), follower(1)))
    assert "rank 0 on r0n0" in verdict.because
    assert verdict.evidence[-1] == "1 rank(s) followed"


def test_the_last_words_of_the_root_are_shown_bounded() -> None:
    verdict = classify(fault(ended(0, 70, says="Traceback\n" + "x" * 5000 + "\n\n")))
    assert verdict.because.endswith("x" * 200)
    assert len(verdict.because) < 400
