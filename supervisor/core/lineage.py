"""Which checkpoint to resume from: along the chain that today's state descends from, never "the newest on disk"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from supervisor.core.observation import Checkpoint, StepState, Survey, SurveyedStep

MAX_ANCESTORS = 256


@dataclass(frozen=True, slots=True)
class Ancestor:
    """An attempt and what it was resumed from; recorded before it starts, so that a late commit changes nothing."""

    attempt: int
    parent: Checkpoint | None


Lineage = tuple[Ancestor, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    checkpoint: Checkpoint
    verified: bool


def chain(lineage: Lineage) -> Iterator[tuple[int, int | None]]:
    """(attempt, highest step that counts) from the newest attempt to the first; None: all of its steps count."""
    by_attempt = {ancestor.attempt: ancestor for ancestor in lineage}
    attempt = max(by_attempt, default=0)
    limit: int | None = None
    while attempt in by_attempt:
        yield attempt, limit
        parent = by_attempt.pop(attempt).parent
        if parent is None:
            return
        attempt, limit = parent.attempt, parent.step


def extend(lineage: Lineage, attempt: int, parent: Checkpoint | None) -> Lineage:
    """The lineage with a new attempt at its end, and only those ancestors that it still descends from."""
    grown = (*lineage, Ancestor(attempt, parent))
    kept = {number for number, _ in chain(grown)}
    return tuple(a for a in grown if a.attempt in kept)[-MAX_ANCESTORS:]


def rebuild(survey: Survey) -> Lineage:
    """The lineage that the manifests themselves tell, for a memory that was lost.

    Damaged steps are asked only where none verifies: then the run must know that it had got somewhere.
    """
    verified = [step for step in survey.steps if step.state is StepState.VERIFIED]
    damaged = [step for step in survey.steps if step.state is StepState.DAMAGED]
    parents = {step.attempt: step.parent for step in verified or damaged}
    return tuple(Ancestor(attempt, parents[attempt]) for attempt in sorted(parents))[-MAX_ANCESTORS:]


def candidates(
    lineage: Lineage, survey: Survey, known: tuple[Candidate, ...], damaged: tuple[Checkpoint, ...]
) -> tuple[Candidate, ...]:
    """Every step of the lineage that may be restored, newest first.

    A step counts once its manifest verified. A trainer of which no manifest was ever seen, whole or damaged, writes
    none: it is taken at its word (what is `known`), whatever directories it uses, and shown as unverified.
    """
    verified = {Checkpoint(s.attempt, s.step) for s in survey.steps if s.state is StepState.VERIFIED}
    manifest_seen = any(s.state is not StepState.UNFINISHED for s in survey.steps)
    writes_manifests = manifest_seen or any(candidate.verified for candidate in known)
    said = set() if writes_manifests else {candidate.checkpoint for candidate in known}
    usable = [c for c in verified | said if c not in damaged]
    found: list[Candidate] = []
    for attempt, limit in chain(lineage):
        steps = [c for c in usable if c.attempt == attempt and (limit is None or c.step <= limit)]
        found.extend(Candidate(c, c in verified) for c in sorted(steps, key=lambda c: c.step, reverse=True))
    return tuple(found)


def damaged_on_lineage(lineage: Lineage, survey: Survey) -> tuple[SurveyedStep, ...]:
    """Steps that the run might have restored, had their manifests verified."""
    limits = dict(chain(lineage))
    return tuple(
        s
        for s in survey.steps
        if s.state is StepState.DAMAGED
        and s.attempt in limits
        and ((limit := limits[s.attempt]) is None or s.step <= limit)
    )
