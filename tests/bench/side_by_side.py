"""Which systems the recovery benchmark compares, and why one is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.bench.ours import MarinSup
from tests.bench.peers import PEERS
from tests.bench.plain import PlainScript
from tests.bench.recovery import data, measure, rows, warm
from tests.bench.report import Row
from tests.bench.system import System


def side_by_side(rounds: int, folder: Path, only: tuple[str, ...]) -> tuple[list[Row], Any]:
    """`only`: names of systems; all where none is given."""
    cache = folder / "cache"
    known: list[System] = [MarinSup(cache), PlainScript(cache), *(peer() for peer in PEERS)]
    wanted = [system for system in known if not only or system.name in only]
    reasons = {system.name: system.missing() for system in wanted}
    runnable = [system for system in wanted if not reasons[system.name]]
    if any(isinstance(system, MarinSup | PlainScript) for system in runnable):
        print("compiling the programs of both layouts for everybody", flush=True)
        warm(cache, folder / "warm")
    trials = measure(runnable, rounds, folder, lambda line: print(line, flush=True))
    left_out = [Row("recovery", name, "-", "-", "-", reason) for name, reason in reasons.items() if reason]
    return [*rows(trials, runnable), *left_out], data(trials)
