"""How results are shown: an aligned table for people, JSON for programs."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEADERS = ("WHAT", "SYSTEM", "MEDIAN", "WORST", "FAILED", "BY STAGE (median s) OR REMARK")


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    system: str
    median: str
    worst: str
    failed: str
    remark: str = ""


def median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"


def milliseconds(value: float | None) -> str:
    """Of a number of seconds."""
    return "-" if value is None else f"{value * 1000:.2f} ms"


def timed(what: str, values: Sequence[float], remark: str = "") -> Row:
    """Of seconds each round took."""
    return Row(what, "marin-sup", milliseconds(median(values)), milliseconds(max(values)), "0", remark)


def table(rows: Sequence[Row]) -> str:
    lines = [HEADERS, *((r.what, r.system, r.median, r.worst, r.failed, r.remark) for r in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADERS))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def write_json(path: Path, results: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    machine = {"cores": len(os.sched_getaffinity(0)), "load": round(os.getloadavg()[0], 2)}
    path.write_text(json.dumps({"machine": machine, **results}, indent=1) + "\n")
