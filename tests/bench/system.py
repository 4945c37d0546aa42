"""One way to run three ranks through faults; the benchmark drives all of them alike."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tests.bench.steps import Recovered, Step

RANKS = 3
KILL, HANG, RESHARD = "SIGKILL of a rank", "SIGSTOP of a rank", "reshard 3 -> 2 ranks"


class System(Protocol):
    name: str
    faults: Sequence[str]  # in the order in which one life goes through them

    def missing(self) -> str:
        """Why it cannot run here, in a sentence; empty where it can."""

    def start(self, folder: Path) -> None:
        """Start all ranks; returns at once."""

    def steps(self) -> list[Step]:
        """All steps completed so far, in the order in which they were completed."""

    def rank_pid(self, rank: int) -> int | None:
        """The process that trains as `rank` now."""

    def lose_host(self) -> float:
        """The last host dies and does not return. Seconds since the epoch when its rank was gone."""

    def stages(self, fault_at: float, recovery: Recovered) -> dict[str, float]:
        """Seconds of the recovery by stage; empty where the system does not tell."""

    def stop(self) -> None:
        """End everything that was started."""

    def story(self) -> str:
        """What a person would want to see of a recovery that failed."""
