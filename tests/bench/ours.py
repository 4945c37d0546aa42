"""`marin-sup run` as a system of the benchmark."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

from supervisor.local.worker_processes import descendants
from tests.bench.plain import phase_stages
from tests.bench.steps import Recovered, Step, holder_of
from tests.bench.system import HANG, KILL, RANKS, RESHARD
from tests.bench.trainer import ARGUMENTS, ENVIRONMENT, SAVE_EVERY
from tests.local.run_process import RunProcess, environment, manifest

GONE_WITHIN = 15.0  # seconds until an ordered death has happened


class MarinSup:
    name = "marin-sup"
    faults = (KILL, HANG, RESHARD)

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._run: RunProcess | None = None

    @property
    def run(self) -> RunProcess:
        assert self._run is not None, "start() comes first"
        return self._run

    def missing(self) -> str:
        return ""

    def start(self, folder: Path) -> None:
        self.start_as(folder, a_run())

    def start_as(self, folder: Path, run: dict[str, Any]) -> None:
        self._run = RunProcess(folder, run)
        if self._cache.exists():
            shutil.copytree(self._cache, self._run.directory / "cache")
        self._run.start()

    def steps(self) -> list[Step]:
        return [Step(e["time"], e["step"], e["attempt"]) for e in self.run.events("step")]

    def rank_pid(self, rank: int) -> int | None:
        """The worker's agent holds the pipe as well, and is not the rank."""
        attempt, node = self.run.attempts()[-1]["number"], self.run.attempts()[-1]["nodes"][rank]
        pipe = self.run.directory / "nodes" / node / f"a{attempt:04d}" / f"rank-{rank:04d}" / "events"
        return holder_of(pipe, self.supervision())

    def supervision(self) -> set[int]:
        """The supervisor, the workers (their agents and guards), and nothing that runs a trainer's code."""
        assert self.run.process is not None
        supervisor = self.run.process.pid
        return {supervisor, *(pid for pid in descendants(supervisor) if b"supervisor.worker" in _command(pid))}

    def lose_host(self) -> float:
        victim, node = self.rank_pid(RANKS - 1), self.run.attempts()[-1]["nodes"][-1]
        order = self.run.directory / "chaos" / "bench.json"
        assert victim is not None, self.story()
        order.parent.mkdir(exist_ok=True)
        order.with_suffix(".new").write_text(json.dumps({"verb": "kill-node", "target": node, "at": None}))
        order.with_suffix(".new").rename(order)
        deadline = time.monotonic() + GONE_WITHIN
        while _lives(victim):
            assert time.monotonic() < deadline, f"kill-node {node} is not carried out\n{self.story()}"
            time.sleep(0.002)
        return time.time()

    def stages(self, fault_at: float, recovery: Recovered) -> dict[str, float]:
        """Detect and decide from the journal, the rest from rank 0's own phases."""
        events = [
            entry["event"]
            for entry in self.run.journal("event")
            if entry["attempt"] == recovery.incarnation and entry["rank"] == 0
        ]
        stages = phase_stages(events, fault_at, recovery)
        noticed, started = self._noticed(fault_at), self._started(recovery.incarnation)
        if noticed is None or started is None:
            return stages
        until_import = stages.pop("until import")
        start = max(0.0, until_import - (started - fault_at))
        return {"detect": noticed - fault_at, "decide, stop": started - noticed, "start": start, **stages}

    def _noticed(self, fault_at: float) -> float | None:
        """When the incident was opened, on the supervisor's clock (milliseconds since the epoch)."""
        opened = [i["opened_ms"] / 1000 for i in self.run.incidents()]
        return next((at for at in opened if at >= fault_at - 0.05), None)

    def _started(self, attempt: int) -> float | None:
        for entry in self.run.journal("attempt"):
            if entry["attempt"]["number"] == attempt:
                return float(entry["t"]) / 1000
        return None

    def stop(self) -> None:
        if self._run is not None:
            self._run.kill_everything()
            self._run = None

    def story(self) -> str:
        return self.run.story()


def a_run(racks: int = RANKS, **spec: Any) -> dict[str, Any]:
    trainer = {
        "module": "training.train",
        "args": list(ARGUMENTS),
        "preload": ["training.loop"],
        "env": environment(ENVIRONMENT),
    }
    recovery = {"startupDeadline": "3m", "budgets": {"software": "100/24h", "unknown": "100/24h"}}
    sections: dict[str, Any] = {
        "trainer": trainer,
        "checkpoint": {"everySteps": SAVE_EVERY},
        "recovery": {**recovery, "nodeFaults": "100/24h"},
        "layout": {"racks": racks, "minRacks": max(1, racks - 1), "nodesPerRack": 1, "ranksPerNode": 1},
    }
    return manifest("bench", **(sections | spec))


def _command(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _lives(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat[stat.rindex(")") + 2] != "Z"
