"""Which category of the ledger is in force, and what happens to time in which nobody watched."""

from __future__ import annotations

from dataclasses import replace

from supervisor.core import ledger
from supervisor.core.decision import Pass
from supervisor.core.ledger import Category
from supervisor.core.memory import Memory, Phase, Stage, Watch
from supervisor.core.observation import RankState
from supervisor.core.reasons import Reason
from supervisor.core.watching import ranks_of

# The phases of the trainer contract in the order in which a rank passes them; the gang is where its slowest rank is.
STARTING_PHASES: tuple[tuple[str, Category], ...] = (
    ("", Category.START),
    ("import", Category.START),
    ("init", Category.START),
    ("restore", Category.RESTORE),
    ("compile", Category.COMPILE),
)


def account_time(p: Pass) -> Pass:
    """Attribute the time since the last pass; every deadline is moved by the time in which nobody watched.

    A clock that went back takes the beginning along, so that the categories still add up. A run that has succeeded
    takes no more time.
    """
    if p.memory.phase is Phase.SUCCEEDED:
        return p
    behind = max(0, p.memory.ledger.at_ms - p.now)
    p = p.remember(ledger=replace(p.memory.ledger, started_ms=p.memory.ledger.started_ms - behind))
    if p.obs.away_ms > 0:
        p = _account_absence(p)
    book = p.memory.ledger
    book = ledger.account(book, book.category, ledger.elapsed(book, p.now))
    return p.remember(ledger=replace(book, at_ms=p.now))


def _account_absence(p: Pass) -> Pass:
    away = p.obs.away_ms
    book = p.memory.ledger
    away_in_book = min(away, ledger.elapsed(book, p.now))
    idle = book.category in (Category.SUSPENDED, Category.HELD, Category.WAIT)  # nothing ran that could have changed
    book = ledger.account(book, book.category if idle else Category.UNATTRIBUTED, away_in_book)
    book = replace(book, at_ms=book.at_ms + away_in_book)
    memory = replace(
        p.memory,
        ledger=book,
        unwatched_ms=p.memory.unwatched_ms + (0 if idle else away_in_book),
        watched_since_ms=p.now,
        unheard=tuple((node, since + away) for node, since in p.memory.unheard),
    )
    if memory.attempt is not None:
        attempt = replace(
            memory.attempt,
            stage_since_ms=memory.attempt.stage_since_ms + away,
            progressed_ms=_moved(memory.attempt.progressed_ms, away, p.now),
            watch=_watched_later(memory.attempt.watch, away),
        )
        memory = replace(memory, attempt=attempt)
    p = replace(p, memory=memory)
    return p.note(
        Reason.RESTARTED_WITHOUT_WATCH, f"nobody watched for {away / 1000:.1f} s; deadlines are moved by that"
    )


def _watched_later(watch: Watch | None, away: int) -> Watch | None:
    """A suspicion from before the absence is dropped: the ranks are looked at anew."""
    return None if watch is None else replace(watch, since_ms=watch.since_ms + away, suspected_ms=None)


def _moved(progressed_ms: int, away: int, now: int) -> int:
    """Always before `now`: that would mean a step that was seen in this very pass."""
    return min(progressed_ms + away, now - 1) if progressed_ms else 0


def explain_absence(p: Pass) -> Pass:
    """Steps that were completed while nobody watched were training after all."""
    attempt = p.memory.attempt
    if not p.memory.unwatched_ms or attempt is None or attempt.progressed_ms != p.now:
        return p
    book = ledger.moved(p.memory.ledger, Category.UNATTRIBUTED, _stepping_category(p.memory), p.memory.unwatched_ms)
    return p.remember(ledger=book, unwatched_ms=0)


def forget_absence(p: Pass) -> Pass:
    """What no step has explained by the end of the attempt stays unattributed."""
    attempt = p.memory.attempt
    trains = attempt is not None and attempt.stage in (Stage.STEPPING, Stage.SAVING)
    return p if trains else p.remember(unwatched_ms=0)


def set_category(p: Pass) -> Pass:
    category = category_of(p)
    return p.remember(ledger=replace(p.memory.ledger, category=category))


def category_of(p: Pass) -> Category:
    memory = p.memory
    if memory.hold is not None and memory.attempt is None:
        return Category.WAIT if memory.hold.reason is Reason.INSUFFICIENT_CAPACITY else Category.HELD
    if memory.phase is Phase.SUSPENDED:
        return Category.SUSPENDED
    attempt = memory.attempt
    if attempt is None:
        return Category.WAIT if memory.reason is Reason.INSUFFICIENT_CAPACITY else Category.PLACE
    match attempt.stage:
        case Stage.LAUNCHING:
            return _launching_category(p)
        case Stage.STOPPING:
            return Category.STOP
        case Stage.SAVING:
            return Category.SAVE
        case Stage.STEPPING:
            saving = any(rank.phase == "save" for _, rank in ranks_of(p))
            return Category.SAVE if saving else _stepping_category(memory)


def _stepping_category(memory: Memory) -> Category:
    """The step now under way is replay when the lineage has completed it before."""
    completed = memory.attempt.completed if memory.attempt else 0
    return Category.REPLAY if completed < memory.high_step else Category.TRAIN


def _launching_category(p: Pass) -> Category:
    phases = [rank.phase for _, rank in ranks_of(p) if rank.state is not RankState.EXITED]
    if not phases:
        return Category.START
    return next((category for phase, category in STARTING_PHASES if phase in phases), Category.COMPILE)
