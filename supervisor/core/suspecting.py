"""From silence to a verdict: suspect first and look at the ranks, then confirm, then act."""

from __future__ import annotations

from dataclasses import replace

from supervisor.core.avoiding import remember_hang
from supervisor.core.deadlines import FIRST_STEP, confirm_ms, deadline_ms, learned
from supervisor.core.decision import Pass
from supervisor.core.hang import Standstill, name_culprit, settled, standstill
from supervisor.core.memory import Attempt, Stage, Watch
from supervisor.core.observation import Evidence, RankEvidence
from supervisor.core.reasons import Reason
from supervisor.core.verdict import Verdict
from supervisor.core.waiting import mark_of_gang, phase_of_gang
from supervisor.core.watching import ranks_of

LOOK_MS = 3_000  # how long an answer about the ranks is waited for


def watch_phase(p: Pass) -> Pass:
    """What the gang is in and since when it stands still; what moved again teaches how long silence may be."""
    attempt = p.memory.attempt
    if attempt is None or attempt.stage is Stage.STOPPING:
        return p
    ranks = [rank for _, rank in ranks_of(p)]
    phase = phase_of_gang(attempt, ranks, p.memory.total_steps)
    mark = mark_of_gang(phase, attempt, ranks)
    watch = attempt.watch
    if watch is not None and (watch.phase, watch.mark) == (phase, mark):
        return p
    if watch is not None:
        p = _learn(p, attempt, watch)
    look = watch.look if watch else 0
    return p.with_attempt(attempt, watch=Watch(phase, mark, p.now, look=look))


def _learn(p: Pass, attempt: Attempt, watch: Watch) -> Pass:
    silence = p.now - watch.since_ms
    p = p.remember(shown=learned(p.memory.shown, watch.phase, silence))
    if watch.suspected_ms is None:
        return p
    name = watch.phase or "import"
    return p.note(Reason.HANG_ENDED, f"attempt {attempt.number} moves again after {silence / 1000:.1f} s in {name}")


def judge_hang(p: Pass) -> tuple[Pass, Verdict | None]:
    """A verdict once a hang is certain; until then perhaps a suspicion, and a time to look again."""
    attempt = p.memory.attempt
    if attempt is None or attempt.watch is None or attempt.stage is Stage.STOPPING:
        return p, None
    watch = attempt.watch
    suspect_at = watch.since_ms + deadline_ms(watch.phase, p.memory.shown, p.spec.deadlines)
    if p.now < suspect_at:
        return p.wake(suspect_at), None
    if watch.suspected_ms is None:
        return _suspect(p, attempt, watch), None
    still, answered = _look(p, attempt, watch)
    confirm_at = watch.since_ms + confirm_ms(watch.phase, p.memory.shown, p.spec.deadlines)
    if p.now >= max(confirm_at, watch.suspected_ms + (0 if answered else LOOK_MS)) or settled(still):
        return remember_hang(p, name_culprit(still), attempt)
    return p.wake(max(confirm_at, p.now + 1)), None


def _suspect(p: Pass, attempt: Attempt, watch: Watch) -> Pass:
    changed = replace(watch, suspected_ms=p.now, look=watch.look + 1)
    silence = (p.now - watch.since_ms) / 1000
    what = {FIRST_STEP: "its first step", "": "import"}.get(watch.phase, watch.phase)
    text = f"attempt {attempt.number}: nothing has moved in {what} for {silence:.1f} s; its ranks are looked at"
    confirm_at = watch.since_ms + confirm_ms(watch.phase, p.memory.shown, p.spec.deadlines)
    p = p.with_attempt(attempt, watch=changed).note(Reason.HANG_SUSPECTED, text)
    return p.wake(max(confirm_at, p.now + 1))


def _look(p: Pass, attempt: Attempt, watch: Watch) -> tuple[Standstill, bool]:
    """What is known of the ranks, and whether every worker of theirs has answered."""
    wanted = evidence_id(p, attempt, watch)
    seen: list[RankEvidence] = []
    answered: set[str] = set()
    for worker in p.obs.workers:
        for result in worker.results:
            if isinstance(result, Evidence) and result.id == wanted:
                seen.extend(result.ranks)
                answered.add(worker.node)
    silence = p.now - watch.since_ms
    still = standstill(watch.phase, silence, ranks_of(p), attempt.placement, seen)
    return still, answered >= set(attempt.placement.nodes)


def evidence_id(p: Pass, attempt: Attempt, watch: Watch) -> str:
    return f"evidence-{p.memory.ledger.started_ms}-a{attempt.number}-{watch.look}"


def evidence_wanted(p: Pass) -> str | None:
    """The look that every worker of the attempt is to take at its ranks now."""
    attempt = p.memory.attempt
    if attempt is None or attempt.watch is None or attempt.watch.suspected_ms is None:
        return None
    return evidence_id(p, attempt, attempt.watch) if attempt.stage is not Stage.STOPPING else None
