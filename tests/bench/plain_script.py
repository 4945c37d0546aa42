"""The script that a team writes first: start all ranks; when one ends or all stand still, kill all, start again.

`plain_script.py FOLDER TRAINER...`: the trainer keeps marin-sup's contract, so its variables are set by hand.
FOLDER/hosts holds how many hosts there are now, and is read before each start.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

FOLDER, TRAINER = Path(sys.argv[1]), sys.argv[2:]
SAVE_EVERY, STANDSTILL, STARTUP = 5, 3.0, 60.0  # steps; seconds without a step; seconds until the first one


def latest() -> str:
    """ATTEMPT:STEP of the newest complete checkpoint."""
    found = FOLDER.glob("checkpoints/a*/*/manifest.json")
    attempt, step = max(((int(p.parts[-3][1:]), int(p.parts[-2])) for p in found), default=(0, 0))
    return f"{attempt}:{step}" if attempt else "none"


def start(attempt: int, hosts: int) -> list[subprocess.Popen]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port, resume = free.getsockname()[1], latest()
    ranks = []
    for rank in range(hosts):
        own = FOLDER / f"a{attempt}" / f"rank-{rank}"
        own.mkdir(parents=True)
        (own / "plan").write_text(json.dumps({"version": 1, "checkpointEverySteps": SAVE_EVERY}))
        names = {"CONTRACT": 1, "NUM_PROCESSES": hosts, "PROCESS_ID": rank, "RACK": rank, "ATTEMPT": attempt}
        names |= {"LAYOUT": json.dumps({"racks": hosts, "nodesPerRack": 1, "ranksPerNode": 1}), "RESUME": resume}
        names |= {"PLAN": own / "plan", "CONTROL": own / "control", "EVENTS": own / "events"}
        names |= {"CHECKPOINTS": FOLDER / "checkpoints", "CACHE": FOLDER / "cache"}
        variables = {f"MARIN_SUP_{name}": str(value) for name, value in names.items()}
        variables["JAX_COORDINATOR_ADDRESS"] = f"127.0.0.1:{port}"
        with (own / "output").open("wb") as out:
            ranks.append(subprocess.Popen(TRAINER, env={**os.environ, **variables}, stdout=out, stderr=out))
    return ranks


def run(attempt: int) -> None:
    """One attempt, to its end."""
    ranks = start(attempt, int((FOLDER / "hosts").read_text()))
    events, size, moved, stepped = FOLDER / f"a{attempt}" / "rank-0" / "events", 0, time.monotonic(), False
    while all(rank.poll() is None for rank in ranks):
        time.sleep(0.02)
        now, seen = time.monotonic(), events.stat().st_size if events.exists() else 0
        if seen > size:
            stepped = stepped or b'"completed"' in events.read_bytes()
            size, moved = seen, now
        if now - moved > (STANDSTILL if stepped else STARTUP):
            break
    for rank in ranks:
        rank.kill()
    for rank in ranks:
        rank.wait()


signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))
number = 1
while True:
    run(number)
    number += 1
