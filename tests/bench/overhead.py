"""What supervision costs a run that nothing happens to: CPU time beside the ranks', and training blocked by saves."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from supervisor.local.worker_processes import descendants
from tests.bench.ours import MarinSup, a_run
from tests.bench.report import Row, median, timed
from tests.bench.system import RANKS

WINDOW = 10.0  # seconds, each round
SAVE_EVERY = 20  # steps
SETTLE_STEPS, START_WITHIN = 30, 180.0
TICK = os.sysconf("SC_CLK_TCK")


def bench(rounds: int, folder: Path) -> tuple[list[Row], Any]:
    system = MarinSup(folder / "cache")
    system.start_as(folder / "run", a_run(checkpoint={"everySteps": SAVE_EVERY}))
    try:
        run = system.run
        run.until(lambda: run.step() >= SETTLE_STEPS, f"step {SETTLE_STEPS}", START_WITHIN)
        ranks = {pid for rank in range(RANKS) if (pid := system.rank_pid(rank)) is not None}
        windows = [_window(system, ranks) for _ in range(rounds)]
        blocked = [e["blockedSeconds"] for e in run.events("checkpoint") if "blockedSeconds" in e]
        steps = [e["time"] for e in run.events("step")]
    finally:
        system.stop()
    return _rows(windows, blocked, steps[-1] - steps[0]), {"windows": windows, "blockedSeconds": blocked}


def _rows(windows: list[dict[str, float]], blocked: list[float], wall: float) -> list[Row]:
    shares = [100 * w["supervision"] / w["ranks"] for w in windows]
    cpu = {name: median([w[name] for w in windows]) or 0.0 for name in ("supervision", "standby", "ranks")}
    split = ", ".join(f"{name} {value:.2f} s" for name, value in cpu.items())
    share = Row("CPU of supervision", "marin-sup", f"{median(shares):.2f} %", f"{max(shares):.2f} %", "0")
    row = Row(share.what, share.system, share.median, share.worst, "0", f"of the ranks'; in {WINDOW:g} s: {split}")
    if not blocked:
        return [row, Row("training blocked by a save", "marin-sup", "-", "-", "0", "no save said how long")]
    said = f"a save every {SAVE_EVERY} steps: {100 * sum(blocked) / wall:.2f} % of wall time"
    return [row, timed("training blocked by a save", blocked, said)]


def _window(system: MarinSup, ranks: set[int]) -> dict[str, float]:
    """CPU seconds of the supervisor with its workers, of what else the workers run (standbys), and of ranks."""
    before = _cpu_seconds(system, ranks)
    time.sleep(WINDOW)
    after = _cpu_seconds(system, ranks)
    return {name: after[name] - before[name] for name in after}


def _cpu_seconds(system: MarinSup, ranks: set[int]) -> dict[str, float]:
    assert system.run.process is not None
    supervision = system.supervision()
    standbys = {*descendants(system.run.process.pid)} - supervision - ranks
    return {"supervision": _spent(supervision), "standby": _spent(standbys), "ranks": _spent(ranks)}


def _spent(pids: Iterable[int]) -> float:
    return sum(_spent_by(pid) for pid in pids)


def _spent_by(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    fields = text[text.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) / TICK
