"""`python -m tests.bench [TOPIC ...] [--rounds N] [--without NAME ...]`: run the topics, print tables, keep JSON."""

from __future__ import annotations

import argparse
import importlib
import os
import tempfile
from pathlib import Path
from typing import Any

from tests.bench.report import Row, table, write_json
from tests.bench.trainer import REPOSITORY

TOPICS = ("core", "sync", "overhead", "recovery")
RESULTS = REPOSITORY / "build" / "bench"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=f"of {', '.join(TOPICS)}; all without one")
    parser.add_argument("--rounds", type=int, default=7, help="how often each thing is measured (default 7)")
    parser.add_argument("--only", action="append", default=[], metavar="SYSTEM", help="of the recovery's; repeatable")
    options = parser.parse_args()
    if unknown := set(options.topics) - set(TOPICS):
        parser.error(f"found {', '.join(sorted(unknown))}, allowed topics are: {', '.join(TOPICS)}")
    if options.rounds < 1:
        parser.error("--rounds: at least 1 is needed")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="marin-sup-bench-") as name:
        for topic in options.topics or TOPICS:
            found, data = _measure(topic, options.rounds, Path(name) / topic, tuple(options.only))
            write_json(RESULTS / f"{topic}.json", {"topic": topic, "rounds": options.rounds, "results": data})
            rows += found
    print(table(rows))
    print(f"\nEach round is in {os.path.relpath(RESULTS)}/TOPIC.json.")


def _measure(topic: str, rounds: int, folder: Path, only: tuple[str, ...]) -> tuple[list[Row], Any]:
    folder.mkdir()
    if topic == "recovery":
        from tests.bench.side_by_side import side_by_side

        return side_by_side(rounds, folder, only)
    module = importlib.import_module(f"tests.bench.{topic}")
    result: tuple[list[Row], Any] = module.bench(rounds, folder)
    return result


if __name__ == "__main__":
    main()
