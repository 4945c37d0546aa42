"""What a gang is in, as a whole: the phase of the rank that the others wait for, and a mark that moves with it."""

from __future__ import annotations

from collections.abc import Iterable

from supervisor.core.deadlines import FIRST_STEP, STEP
from supervisor.core.memory import Attempt, Stage
from supervisor.core.observation import Rank, RankState

STARTING = ("", "import", "init", "restore", "compile")
BETWEEN_STEPS = ("save", "eval")


def phase_of_gang(attempt: Attempt, ranks: Iterable[Rank], total_steps: int | None) -> str:
    """The contract's phase that decides which deadline applies; "step" or "first step" while ranks train."""
    phases = {rank.phase for rank in ranks if rank.state is not RankState.EXITED}
    if attempt.stage is Stage.LAUNCHING:
        if not phases:
            return ""
        return next((phase for phase in STARTING if phase in phases), FIRST_STEP)
    at_the_end = total_steps is not None and attempt.completed >= total_steps
    if at_the_end or phases == {"exit"}:
        return next((phase for phase in BETWEEN_STEPS if phase in phases), "exit")
    return next((phase for phase in BETWEEN_STEPS if phase in phases), STEP)


def mark_of_gang(phase: str, attempt: Attempt, ranks: Iterable[Rank]) -> tuple[int, ...]:
    """Changes whenever there is progress in `phase`: steps completed, or bytes that moved.

    In a phase that comes once an attempt, a rank that has passed on is progress, too.
    """
    if phase == STEP:
        return (attempt.completed,)
    ranks = tuple(ranks)
    passed_on = sum(1 for rank in ranks if rank.phase != phase)
    moved = sum(rank.moved for rank in ranks if rank.phase == phase)
    return (attempt.completed, passed_on, moved)
