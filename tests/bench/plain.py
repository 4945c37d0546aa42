"""The plain script (`plain_script.py`) as a system of the benchmark."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.bench.steps import Recovered, Step, holder_of, json_lines
from tests.bench.system import HANG, KILL, RANKS, RESHARD
from tests.bench.trainer import ARGUMENTS, ENVIRONMENT, REPOSITORY


class PlainScript:
    name = "plain script"
    faults = (KILL, HANG, RESHARD)

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._folder = Path()
        self._process: subprocess.Popen[bytes] | None = None

    def missing(self) -> str:
        return ""

    def start(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True)
        if self._cache.exists():
            shutil.copytree(self._cache, folder / "cache")
        self._hosts(RANKS)
        script = Path(__file__).with_name("plain_script.py")
        with (folder / "output").open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, str(script), str(folder), sys.executable, "-m", "training.train", *ARGUMENTS],
                env={**os.environ, **ENVIRONMENT},
                cwd=REPOSITORY,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def steps(self) -> list[Step]:
        found = []
        for attempt in self._attempts():
            for line in json_lines(self._folder / f"a{attempt}" / "rank-0" / "events"):
                if line["event"] == "step" and line["state"] == "completed":
                    found.append(Step(line["time"], line["step"], attempt))
        return found

    def rank_pid(self, rank: int) -> int | None:
        return holder_of(self._folder / f"a{max(self._attempts())}" / f"rank-{rank}" / "events")

    def lose_host(self) -> float:
        victim = self.rank_pid(RANKS - 1)
        assert victim is not None, self.story()
        self._hosts(RANKS - 1)
        os.kill(victim, signal.SIGKILL)
        return time.time()

    def stages(self, fault_at: float, recovery: Recovered) -> dict[str, float]:
        events = list(json_lines(self._folder / f"a{recovery.incarnation}" / "rank-0" / "events"))
        return phase_stages(events, fault_at, recovery)

    def stop(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def story(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-1000:] for path in self._folder.glob("a*/rank-*/output"))

    def keep_cache(self) -> None:
        """So that every later start, of whichever system, finds the programs compiled."""
        shutil.copytree(self._folder / "cache", self._cache, dirs_exist_ok=True)

    def _hosts(self, number: int) -> None:
        (self._folder / "hosts").write_text(str(number))

    def _attempts(self) -> list[int]:
        return sorted(int(path.name[1:]) for path in self._folder.glob("a[0-9]*"))


def phase_stages(events: list[dict], fault_at: float, recovery: Recovered) -> dict[str, float]:
    """From rank 0's events of the new attempt: until its first word, each phase, and the steps done again."""
    marks = [(event["time"], event["phase"]) for event in events if event["event"] == "phase"]
    steps = [event["time"] for event in events if event["event"] == "step" and event["state"] == "completed"]
    marks = [(at, phase) for at, phase in marks if at < steps[0] and phase != "train"]
    stages = {"until import": marks[0][0] - fault_at}
    ends = [at for at, _ in marks[1:]] + [steps[0]]
    for (at, phase), end in zip(marks, ends, strict=True):
        stages[phase] = stages.get(phase, 0.0) + end - at
    return {**stages, "replay": recovery.new_step_at - steps[0]}
