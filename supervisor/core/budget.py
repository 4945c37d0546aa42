"""Sliding-window budgets: our own counts, kept in memory, never derived from processes or pods."""

from __future__ import annotations

from dataclasses import dataclass

from supervisor.core.spec import Budget, Budgets, Cause

MAX_CHARGES = 256  # a bound for memory; far above any budget that lets a run live


@dataclass(frozen=True, slots=True)
class Charge:
    """One fault, charged once however many ranks it took. `node` is blamed only where the evidence names one."""

    cause: Cause
    at_ms: int
    node: str | None = None


def charged(charges: tuple[Charge, ...], charge: Charge) -> tuple[Charge, ...]:
    return (*charges, charge)[-MAX_CHARGES:]


def used(charges: tuple[Charge, ...], cause: Cause, budget: Budget, now_ms: int) -> int:
    return sum(1 for c in charges if c.cause is cause and now_ms - c.at_ms < budget.window_ms)


def exhausted(charges: tuple[Charge, ...], cause: Cause, budgets: Budgets, now_ms: int) -> bool:
    """Whether the window holds more faults of this cause than its budget grants."""
    budget = budgets.of(cause)
    return budget is not None and used(charges, cause, budget, now_ms) > budget.count


def forgiven(charges: tuple[Charge, ...], causes: frozenset[Cause]) -> tuple[Charge, ...]:
    """What a person's `resume` leaves: the named causes start from nothing."""
    return tuple(c for c in charges if c.cause not in causes)


def set_aside(charges: tuple[Charge, ...], limit: Budget, now_ms: int) -> frozenset[str]:
    """Nodes blamed at least `limit.count` times within the window: no attempt is placed on them meanwhile."""
    blamed = [c.node for c in charges if c.node is not None and now_ms - c.at_ms < limit.window_ms]
    return frozenset(node for node in blamed if blamed.count(node) >= limit.count)
