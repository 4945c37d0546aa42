"""A real `marin-sup run` in a process of its own, and what its run directory tells."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from supervisor.local.worker_processes import descendants
from supervisor.observe.journal import read_journal

REPOSITORY = Path(__file__).parents[2]
ONE_THREAD = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "OMP_NUM_THREADS": "1"}


def manifest(name: str = "run", racks: int = 2, nodes: int = 1, ranks: int = 1, spares: int = 1, **spec: Any) -> dict:
    """A TrainingRun of the tiny model; `spec` replaces or adds whole sections."""
    tiny = {"module": "training.train", "args": ["--config", "tiny"], "env": environment(ONE_THREAD)}
    layout = {
        "racks": racks,
        "minRacks": 1,
        "nodesPerRack": nodes,
        "ranksPerNode": ranks,
        "spares": {"perRack": spares},
    }
    sections = {
        "layout": layout,
        "trainer": tiny,
        "checkpoint": {"everySteps": 5},
        "recovery": {"startupDeadline": "3m", "stopGrace": "2s", "noProgressLimit": 20, "nodeFaults": "20/24h"},
    }
    return {
        "apiVersion": "supervisor.marin.community/v1alpha1",
        "kind": "TrainingRun",
        "metadata": {"name": name},
        "spec": sections | spec,
    }


def environment(variables: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in variables.items()]


class RunProcess:
    """`directory` is the run's; the supervisor may be started, killed and started again."""

    def __init__(self, folder: Path, run: dict, *arguments: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.directory = folder / "run"
        self.file = folder / "run.yaml"
        self.file.write_text(yaml.safe_dump(run))
        self.arguments = arguments
        self.screen = folder / "screen.txt"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> RunProcess:
        command = [sys.executable, "-m", "supervisor", "run", str(self.file), "--workdir", str(self.directory)]
        with self.screen.open("ab") as screen:
            self.process = subprocess.Popen(
                [*command, *self.arguments, *more],
                stdout=screen,
                stderr=screen,
                stdin=subprocess.DEVNULL,
                cwd=REPOSITORY,
                start_new_session=True,
                preexec_fn=_as_from_a_terminal,
            )
        return self

    def call(self, *arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Another `marin-sup` command about this run, as from another terminal."""
        command = [sys.executable, "-m", "supervisor", arguments[0], str(self.directory), *arguments[1:]]
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, cwd=REPOSITORY, check=False)

    def wait(self, timeout: float = 240) -> int:
        """Its exit code. Fails with all that is known when it does not come."""
        assert self.process is not None
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"marin-sup run did not end within {timeout:g} s\n{self.story()}") from None

    def until(self, condition: Callable[[], Any], what: str, timeout: float = 120) -> Any:
        """Wait for a condition with a deadline; what it found is returned."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if found := condition():
                return found
            if self.process is not None and self.process.poll() is not None and not condition():
                raise AssertionError(f"marin-sup ended ({self.process.returncode}) before {what}\n{self.story()}")
            time.sleep(0.02)
        raise AssertionError(f"not within {timeout:g} s: {what}\n{self.story()}")

    def kill_supervisor(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def kill_everything(self) -> None:
        """For the end of a test: nothing of it lives on."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid in self.worker_pids().values():
            for victim in [*descendants(pid), pid]:
                _kill(victim)

    # ---- what the run directory tells

    def journal(self, kind: str | None = None) -> list[dict[str, Any]]:
        return [entry for entry in read_journal(self.directory / "journal.jsonl") if kind in (None, entry["kind"])]

    def events(self, name: str) -> list[dict[str, Any]]:
        """Contract events of one name, with their attempt and rank."""
        found = [e for e in self.journal("event") if e["event"].get("event") == name]
        return [{"attempt": e["attempt"], "rank": e["rank"], **e["event"]} for e in found]

    def step(self) -> int:
        return max((e["step"] for e in self.events("step")), default=0)

    def attempts(self) -> list[dict[str, Any]]:
        return [entry["attempt"] for entry in self.journal("attempt")]

    def incidents(self) -> list[dict[str, Any]]:
        """The newest version of each."""
        newest = {entry["incident"]["number"]: entry["incident"] for entry in self.journal("incident")}
        return [newest[number] for number in sorted(newest)]

    def reasons(self) -> list[str]:
        return [entry["reason"] for entry in self.journal("note")]

    def lineage_steps(self) -> dict[int, dict[str, Any]]:
        """Step -> its completed event, along the chain that the final state descends from."""
        resume = {a["number"]: a["resume"] for a in self.attempts()}
        by_attempt: dict[int, dict[int, dict[str, Any]]] = {}
        for event in self.events("step"):
            by_attempt.setdefault(event["attempt"], {})[event["step"]] = event
        steps: dict[int, dict[str, Any]] = {}
        attempt, limit = max(resume), None
        while True:
            for step, event in by_attempt.get(attempt, {}).items():
                if limit is None or step <= limit:
                    steps[step] = event
            if resume[attempt] is None:
                return steps
            attempt, limit = (int(part) for part in resume[attempt].split(":"))

    def losses(self) -> dict[int, float]:
        return {step: event["loss"] for step, event in sorted(self.lineage_steps().items())}

    def worker_pids(self) -> dict[str, int]:
        found = {}
        for path in sorted(self.directory.glob("nodes/*/worker.json")):
            data = json.loads(path.read_text())
            if Path(f"/proc/{data['pid']}").exists():
                found[path.parent.name] = data["pid"]
        return found

    def story(self) -> str:
        """What a person would want to see of a failed test: the screen, the notes, the last words of ranks."""
        notes = [f"{e['t'] % 10_000_000} {e['reason']}: {e['message']}" for e in self.journal("note")]
        exits = [
            f"a{e['attempt']} rank {e['rank']}: {e['code']} {e['signal']} {e['tail'][-300:]}"
            for e in self.journal("exit")
        ]
        screen = self.screen.read_text(errors="replace")[-3000:] if self.screen.exists() else ""
        log = self.directory / "supervisor.log"
        logged = log.read_text(errors="replace")[-2000:] if log.exists() else ""
        return "\n".join([screen, "--- notes", *notes, "--- exits", *exits[-8:], "--- log", logged])


@contextmanager
def running(folder: Path, run: dict, *arguments: str) -> Iterator[RunProcess]:
    process = RunProcess(folder, run, *arguments).start()
    try:
        yield process
    finally:
        process.kill_everything()


def _as_from_a_terminal() -> None:
    """Whoever runs the tests may ignore these signals (nohup does, and so does a shell in the background)."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
