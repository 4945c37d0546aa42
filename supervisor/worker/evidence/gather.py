"""All providers over the same ranks, merged into one answer a rank."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from supervisor.worker.evidence.living_rank import LivingRank
from supervisor.worker.evidence.process_state import process_state
from supervisor.worker.evidence.python_stack import python_stack

Provider = Callable[[Sequence[LivingRank]], dict[int, dict[str, Any]]]

PROVIDERS: tuple[Provider, ...] = (  # asking for stacks costs CPU, so use is measured before
    process_state,
    python_stack,
)


def gather(ranks: Sequence[LivingRank]) -> dict[str, Any]:
    """{ranks: [{rank, state, cpu, stack, error}]} of those that live to the end; closes `ranks`. Never raises."""
    seen: dict[int, dict[str, Any]] = {
        rank.rank: {"rank": rank.rank, "state": "", "cpu": None, "stack": [], "error": ""} for rank in ranks
    }
    try:
        for provider in PROVIDERS:
            for number, facts in _facts(provider, ranks).items():
                errors = filter(None, (seen[number]["error"], facts.get("error", "")))
                seen[number].update(facts, error="; ".join(errors))
        return {"ranks": [seen[rank.rank] for rank in ranks if not rank.ended]}
    finally:
        for rank in ranks:
            rank.close()


def _facts(provider: Provider, ranks: Sequence[LivingRank]) -> dict[int, dict[str, Any]]:
    try:
        return provider(ranks)
    except Exception as error:  # noqa: BLE001 (what the other providers saw still counts)
        traceback.print_exc(file=sys.stderr)
        return {rank.rank: {"error": f"{provider.__name__}: {error!r}"} for rank in ranks}
