"""Starts real ranks under the trainer contract, as a worker would, and reads what they say."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema

REPOSITORY = Path(__file__).parents[2]
SCHEMA = json.loads((REPOSITORY / "supervisor/wire/schema/trainer-v1.json").read_text())
EVENT = jsonschema.Draft202012Validator({"$ref": "#/$defs/event", "$defs": SCHEMA["$defs"]})
ENVIRONMENT = jsonschema.Draft202012Validator({"$ref": "#/$defs/environment", "$defs": SCHEMA["$defs"]})
DEADLINE = 150.0  # seconds; a start costs 5 on a free core, and tests share two cores with others


def base_environment() -> dict[str, str]:
    """This process's environment without what would reach into a rank."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MARIN_SUP", "JAX_", "XLA_"))}
    return kept | {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "OMP_NUM_THREADS": "1"}


def read_events(path: Path) -> list[dict[str, Any]]:
    """All whole lines, each checked against the contract's schema."""
    if not path.exists():
        return []
    events = [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    for event in events:
        EVENT.validate(event)
    return events


@dataclass
class Attempt:
    """One attempt of `racks` x `ranks` processes in `folder`; checkpoints and cache are the folder's."""

    folder: Path
    number: int
    racks: int = 1
    ranks: int = 1
    resume: str = "none"
    plan: dict[str, Any] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        plan = {"version": 1, "run": "test", "amendment": 0} | self.plan
        (self.folder / f"plan-{self.number}.json").write_text(json.dumps(plan))
        for rank in range(self.racks * self.ranks):
            self.control(rank)
            self.processes.append(self._start_rank(rank, port))

    def _start_rank(self, rank: int, port: int) -> subprocess.Popen[bytes]:
        layout = {"racks": self.racks, "nodesPerRack": 1, "ranksPerNode": self.ranks}
        contract = {
            "MARIN_SUP_CONTRACT": "1",
            "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}",
            "MARIN_SUP_NUM_PROCESSES": str(self.racks * self.ranks),
            "MARIN_SUP_PROCESS_ID": str(rank),
            "MARIN_SUP_RACK": str(rank // self.ranks),
            "JAX_PARTITION_INDEX": str(rank // self.ranks),
            "MARIN_SUP_ATTEMPT": str(self.number),
            "MARIN_SUP_LAYOUT": json.dumps(layout),
            "MARIN_SUP_PLAN": str(self.folder / f"plan-{self.number}.json"),
            "MARIN_SUP_CONTROL": str(self._path("control", rank)),
            "MARIN_SUP_EVENTS": str(self._path("events", rank)),
            "MARIN_SUP_RESUME": self.resume,
            "MARIN_SUP_CHECKPOINTS": str(self.folder / "checkpoints"),
            "MARIN_SUP_CACHE": str(self.folder / "cache"),
        }
        ENVIRONMENT.validate(contract)
        command = [sys.executable, "-m", "training.train", "--config", "tiny", *self.arguments]
        with self._path("output", rank).open("wb") as output:
            return subprocess.Popen(
                command, env=base_environment() | contract, cwd=REPOSITORY, stdout=output, stderr=output
            )

    def _path(self, kind: str, rank: int) -> Path:
        return self.folder / f"{kind}-{self.number}-{rank}"

    def control(self, rank: int = 0, save: int = 0, stop: bool = False, fail: int = 0, **chaos: int) -> None:
        """Replace one rank's control file."""
        new = self._path("control-new", rank)
        requests = {"version": 1, "save": save, "stop": stop, "fail": fail}
        new.write_text(json.dumps(requests | ({"chaos": chaos} if chaos else {})))
        new.replace(self._path("control", rank))

    def events(self, rank: int = 0, kind: str | None = None) -> list[dict[str, Any]]:
        return [e for e in read_events(self._path("events", rank)) if kind in (None, e["event"])]

    def losses(self, rank: int = 0) -> dict[int, float]:
        return {e["step"]: e["loss"] for e in self.events(rank, "step") if e["state"] == "completed"}

    def metrics(self) -> dict[int, dict[str, float]]:
        return {e["step"]: e["metrics"] for e in self.events(0, "step") if e["state"] == "completed"}

    def committed(self) -> list[int]:
        return [e["step"] for e in self.events(0, "checkpoint") if e["state"] == "committed"]

    def output(self, rank: int = 0) -> str:
        return self._path("output", rank).read_text()

    def wait_until(self, condition: Callable[[], Any], what: str) -> None:
        """Poll until `condition` holds; fails at once when all ranks have left without it."""
        deadline = time.monotonic() + DEADLINE
        while not condition():
            left = [process.poll() for process in self.processes]
            gone = all(code is not None for code in left) and not condition()
            assert not gone, f"{what}: ranks left with {left}\n{self.output()}"
            assert time.monotonic() < deadline, f"{what}: not within {DEADLINE} s\n{self.output()}"
            time.sleep(0.02)

    def exit_codes(self) -> list[int]:
        return [process.wait(DEADLINE) for process in self.processes]


@contextmanager
def attempt(folder: Path, number: int, **options: Any) -> Iterator[Attempt]:
    """A started attempt; no rank outlives the block."""
    started = Attempt(folder, number, **options)
    started.start()
    try:
        yield started
    finally:
        for process in started.processes:
            process.kill()
            process.wait()
