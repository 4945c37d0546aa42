"""A supervisor's end of sync, and real workers on it: one hub, a server that can be killed, worker processes."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from supervisor.wire.address import Address, write_address
from supervisor.wire.hub import Ring, SyncHub
from supervisor.wire.messages import (
    Control,
    EventRecord,
    GangOrder,
    LayoutShape,
    Order,
    RankAssignment,
    RankReport,
    TaskOrder,
    TaskResult,
    TrainerCommand,
)
from supervisor.wire.server import SyncServer
from supervisor.worker.descendants import processes

ROOT = Path(__file__).parents[2]
TOKEN = "a-token-for-tests-0123456789"
NODE = "r0n1"
T = TypeVar("T")


def eventually(condition: Callable[[], T], what: str, seconds: float = 10.0) -> T:
    """The condition's first true value; fails with `what` in words."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"after {seconds:.0f} s still not: {what}"
        time.sleep(0.005)
    return value


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def agent_of(guard: int) -> int:
    """The guard's one child: the agent."""
    return next(process.pid for process in processes() if process.parent == guard)


def marked(workdir: Path) -> list[int]:
    """Processes that were started for the worker in `workdir`, whoever their parent is now."""
    wanted = f"MARIN_SUP_WORKDIR={workdir}".encode()
    found = []
    for path in Path("/proc").iterdir():
        try:
            if path.name.isdigit() and wanted in (path / "environ").read_bytes().split(b"\0") and alive(int(path.name)):
                found.append(int(path.name))
        except OSError:
            continue
    return found


def trainer(*words: str, **members: object) -> TrainerCommand:
    return TrainerCommand(module="tests.worker.fake_trainer", args=words, **members)  # type: ignore[arg-type]


def gang(number: int, program: TrainerCommand, ranks: tuple[int, ...] = (0,), **members: object) -> GangOrder:
    values: dict[str, object] = {
        "kind": "training",
        "number": number,
        "command": "run",
        "ranks": tuple(RankAssignment(rank, slot, 0) for slot, rank in enumerate(ranks)),
        "world_size": len(ranks),
        "coordinator": "127.0.0.1:1",
        "layout": LayoutShape(1, 1, len(ranks)),
        "trainer": program,
        "checkpoints": "/nowhere/checkpoints",
        "cache": "",
        "plan": {"version": 1, "run": "test", "amendment": 0},
        "control": Control(),
        "grace_ms": 5000,
        **members,
    }
    return GangOrder(**values)  # type: ignore[arg-type]


class Bench:
    """`events` holds every event that the hub was given, once each, in order."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.sync = directory / "sync.json"
        self.workdir = directory / "node"
        self.rings: queue.SimpleQueue[tuple[float, Ring]] = queue.SimpleQueue()
        self.events: list[EventRecord] = []
        self._workers: list[subprocess.Popen[bytes]] = []
        self.serve()

    def serve(self, recorded: dict[tuple[int, int], int] | None = None) -> None:
        """A new supervisor process: a new hub, on another port."""
        self.hub = SyncHub(
            lambda ring: self.rings.put((time.monotonic(), ring)), lambda node, record: self.events.append(record)
        )
        self.hub.resume(recorded or {})
        self.server = SyncServer(self.hub, TOKEN)
        self.server.start()
        write_address(self.sync, Address(*self.server.address, TOKEN))

    def worker(
        self, environment: dict[str, str] | None = None, program: Sequence[str] = ("-m", "supervisor.worker")
    ) -> subprocess.Popen[bytes]:
        """Start the worker and wait until it has registered."""
        arguments = ["--node", NODE, "--sync", str(self.sync), "--workdir", str(self.workdir)]
        process = subprocess.Popen(
            [sys.executable, *program, *arguments],
            cwd=ROOT,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
        self._workers.append(process)
        eventually(lambda: self.hub.report(NODE) and self.hub.report(NODE).pid == process.pid, "the worker's report")
        return process

    def order(self, *gangs: GangOrder, tasks: tuple[TaskOrder, ...] = (), **members: object) -> None:
        self.hub.set_order(NODE, Order(0, gangs=gangs, tasks=tasks, **members))  # type: ignore[arg-type]

    def rank(self, rank: int = 0, attempt: int = 1) -> RankReport | None:
        report = self.hub.report(NODE)
        gangs = [g for g in report.gangs if g.number == attempt] if report else []
        return next((r for g in gangs for r in g.ranks if r.rank == rank), None)

    def gang_state(self, attempt: int = 1) -> str:
        report = self.hub.report(NODE)
        return next((g.state for g in report.gangs if g.number == attempt), "") if report else ""

    def until_exit(self, rank: int = 0, attempt: int = 1, seconds: float = 10.0) -> RankReport:
        def ended() -> RankReport | None:
            found = self.rank(rank, attempt)
            return found if found and found.exit else None

        return eventually(ended, f"the exit of rank {rank} of attempt {attempt}", seconds)

    def until_running(self, rank: int = 0, attempt: int = 1) -> RankReport:
        def running() -> RankReport | None:
            found = self.rank(rank, attempt)
            return found if found and found.state == "running" else None

        return eventually(running, f"rank {rank} of attempt {attempt} running")

    def result(self, name: str) -> TaskResult:
        def given() -> TaskResult | None:
            report = self.hub.report(NODE)
            return next((r for r in report.results if r.id == name), None) if report else None

        return eventually(given, f"the result of task {name}")

    def output(self, rank: int = 0, attempt: int = 1) -> str:
        path = self.workdir / f"a{attempt:04d}" / f"rank-{rank:04d}" / "output.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def printed_pid(self, name: str) -> int:
        """The process id that the fake trainer's `child` or `escape` printed."""

        def found() -> str | None:
            return next((line.split()[1] for line in self.output().splitlines() if line.startswith(name)), None)

        return int(eventually(found, f"the process id of {name}"))

    @staticmethod
    def kill(pid: int) -> None:
        os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        for process in self._workers:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
        self.server.stop()
        eventually(lambda: not marked(self.workdir), "no process of this test left")
