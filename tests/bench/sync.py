"""The sync server under the workers of 11 racks: one round of 704 rank reports, and 176 workers that come back at
once. The workers are clients in a process of their own, over loopback.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from supervisor.wire.hub import SyncHub
from supervisor.wire.messages import Order
from supervisor.wire.server import SyncServer
from tests.bench.report import Row, timed
from tests.bench.sync_workers import WORKERS, node_name
from tests.bench.trainer import REPOSITORY

TOKEN = "a-token-for-benchmarks-0123456789"


@dataclass(frozen=True, slots=True)
class Asked:
    """Seconds of each round: until the last worker was served, and of the server's own CPU."""

    wall: list[float]
    cpu: list[float]


def bench(rounds: int, folder: Path) -> tuple[list[Row], Any]:
    hub = SyncHub()
    for number in range(WORKERS):
        hub.set_order(node_name(number), Order(0, key="a"))
    server = SyncServer(hub, TOKEN)
    server.start()
    try:
        reports, returns = _ask(server, "reports", rounds), _ask(server, "return", rounds)
    finally:
        server.stop()
    rows = [
        timed("704 rank reports in one round", reports.cpu, "CPU time of the server"),
        timed("704 rank reports in one round", reports.wall, f"until the last of {WORKERS} workers is acknowledged"),
        timed("176 workers reconnect at once", returns.wall, "until the last has its report accepted and its order"),
    ]
    return rows, {"reports": asdict(reports), "return": asdict(returns)}


def _ask(server: SyncServer, mode: str, rounds: int) -> Asked:
    host, port = server.address
    command = [sys.executable, "-m", "tests.bench.sync_workers", host, str(port), TOKEN, mode, str(rounds)]
    asked = Asked([], [])
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as workers:
        assert workers.stdout is not None
        workers.stdout.readline()  # they are there
        spent = time.process_time()
        for line in workers.stdout:
            asked.wall.append(float(line))
            asked.cpu.append(time.process_time() - spent)
            spent = time.process_time()
    if workers.returncode != 0:
        raise RuntimeError("the workers of the benchmark failed; what they said is above")
    return asked
