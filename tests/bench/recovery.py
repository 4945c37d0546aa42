"""Recovery side by side: each round starts every system anew, in turns, and takes it through the same faults.

A trial is the time from the fault to the first step that the run had not completed before, as the rank that completes
it stamps it: the same for all systems. Within a round all systems get the same victim and the same pauses.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.plain import PlainScript
from tests.bench.report import Row, median, seconds
from tests.bench.steps import recovered
from tests.bench.system import HANG, KILL, RANKS, RESHARD, System

START_WITHIN = 120.0  # seconds to the first steps
RECOVER_WITHIN = 60.0  # seconds after which a recovery has failed
SETTLE_STEPS, SETTLE_SECONDS = 15, 6.0  # before each fault
JITTER = 0.5  # seconds: a checkpoint interval, so that faults fall anywhere in it
LOOK_EVERY = 0.05


@dataclass(frozen=True, slots=True)
class Trial:
    """`seconds` is None where no new step came; `why` says what is known then."""

    system: str
    fault: str
    round: int
    seconds: float | None
    steps_lost: int = 0
    stages: dict[str, float] = field(default_factory=dict)
    why: str = ""


def measure(systems: Sequence[System], rounds: int, folder: Path, tell: Callable[[str], None]) -> list[Trial]:
    trials: list[Trial] = []
    for number in range(rounds):
        turn = number % len(systems)
        for system in [*systems[turn:], *systems[:turn]]:
            for trial in _round(system, number, folder / f"{system.name.replace(' ', '-')}-{number}"):
                shown = "failed" if trial.seconds is None else f"{trial.seconds:.2f} s"
                tell(f"round {number + 1}/{rounds}  {trial.system}: {trial.fault}: {shown} {trial.why[:200]}")
                trials.append(trial)
    return trials


def warm(cache: Path, folder: Path) -> None:
    """Compile the programs of both layouts once, for everybody: no system pays for another's first time."""
    system = PlainScript(cache)
    system.start(folder)
    try:
        _settle(system, 0)
        fault_at = system.lose_host()
        _wait(lambda: recovered(system.steps(), fault_at), START_WITHIN)
        system.keep_cache()
    finally:
        system.stop()


def _round(system: System, number: int, folder: Path) -> Iterator[Trial]:
    chance = random.Random(number)
    left = list(system.faults)
    life = 0
    while left:
        life += 1
        system.start(folder / f"life-{life}")
        try:
            while left:
                fault = left.pop(0)
                trial = _trial(system, fault, number, chance.uniform(0, JITTER))
                yield trial
                if trial.seconds is None:
                    break
        finally:
            system.stop()


def _trial(system: System, fault: str, number: int, jitter: float) -> Trial:
    if not _settle(system, jitter):
        return Trial(system.name, fault, number, None, why=f"it does not train\n{system.story()}")
    fault_at = _strike(system, fault, number % RANKS)
    found = _wait(lambda: recovered(system.steps(), fault_at), RECOVER_WITHIN)
    if found is None:
        return Trial(system.name, fault, number, None, why=f"no new step in {RECOVER_WITHIN:g} s\n{system.story()}")
    return Trial(system.name, fault, number, found.seconds, found.steps_lost, system.stages(fault_at, found))


def _settle(system: System, jitter: float) -> bool:
    """Whether enough steps of the current incarnation came, and the time for a standby to warm up has passed."""

    def settled() -> bool:
        steps = system.steps()
        own = [s for s in steps if s.incarnation == steps[-1].incarnation]
        return len(own) >= SETTLE_STEPS and time.time() - own[0].time >= SETTLE_SECONDS

    if not _wait(settled, START_WITHIN):
        return False
    time.sleep(jitter)
    return True


def _strike(system: System, fault: str, victim: int) -> float:
    if fault == RESHARD:
        return system.lose_host()
    pid = system.rank_pid(victim)
    if pid is None:
        raise RuntimeError(f"{system.name}: no process trains as rank {victim}\n{system.story()}")
    os.kill(pid, {KILL: signal.SIGKILL, HANG: signal.SIGSTOP}[fault])
    return time.time()


def _wait(condition: Callable[[], Any], limit: float) -> Any:
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        try:
            if found := condition():
                return found
        except IndexError:  # nothing has been completed yet
            pass
        time.sleep(LOOK_EVERY)
    return None


def rows(
    trials: Sequence[Trial], systems: Sequence[System], faults: Sequence[str] = (KILL, HANG, RESHARD)
) -> list[Row]:
    made = []
    for fault in faults:
        for system in systems:
            own = [t for t in trials if (t.system, t.fault) == (system.name, fault)]
            if own:
                made.append(_row(fault, system.name, own))
    return made


def _row(fault: str, system: str, trials: Sequence[Trial]) -> Row:
    times = [t.seconds for t in trials if t.seconds is not None]
    stages = dict.fromkeys(name for trial in trials for name in trial.stages)
    split = [f"{name} {median([t.stages.get(name, 0.0) for t in trials if t.stages]):.2f}" for name in stages]
    worst = seconds(max(times)) if times else "-"
    return Row(
        fault, system, seconds(median(times)), worst, f"{len(trials) - len(times)} of {len(trials)}", ", ".join(split)
    )


def data(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    return [asdict(trial) for trial in trials]
