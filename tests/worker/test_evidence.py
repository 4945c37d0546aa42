"""What a rank shows while it stands still: its own work, the bytes that it moves, and what its process does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.worker.bench import Bench, eventually, gang, trainer


def completed(step: int, own_seconds: float | None) -> str:
    said = {} if own_seconds is None else {"ownSeconds": own_seconds}
    return json.dumps({"event": "step", "step": step, "state": "completed", **said})


def emit(*events: str) -> tuple[str, ...]:
    return tuple(word for event in events for word in ("emit", event))


@pytest.mark.parametrize(
    ("own_seconds", "own_ms"),
    [
        ((9.0,) * 9 + (0.2,) * 7 + (30.0,), 200),  # nine seconds are long ago, thirty are one outlier
        ((0.0001,), 1),
        ((1e300,), 86_400_000),
        ((None, None), 0),
    ],
    ids=["the last eight count", "very little is not nothing", "an absurd number is bounded", "a silent trainer"],
)
def test_a_ranks_own_work_in_a_step_is_reported(
    bench: Bench, own_seconds: tuple[float | None, ...], own_ms: int
) -> None:
    bench.worker()
    steps = [completed(number, own) for number, own in enumerate(own_seconds, start=1)]
    bench.order(gang(1, trainer(*emit(*steps), "exit", "0")))
    ended = bench.until_exit()
    assert (ended.completed, ended.own_ms) == (len(own_seconds), own_ms)


def test_bytes_that_move_are_reported_within_a_second_and_start_anew_with_the_next_phase(
    bench: Bench, tmp_path: Path
) -> None:
    def progress(phase: str, size: int) -> str:
        return json.dumps({"event": "progress", "phase": phase, "bytes": size})

    def phase(name: str) -> str:
        return json.dumps({"event": "phase", "phase": name})

    files = [tmp_path / name for name in ("more", "further", "next")]
    words = [
        *emit(phase("restore"), progress("restore", 1000)),
        *("wait-file", str(files[0]), *emit(progress("restore", 5 << 30))),
        *("wait-file", str(files[1]), *emit(progress("save", 77), progress("restore", 6 << 30))),
        *("wait-file", str(files[2]), *emit(phase("train"), completed(1, None)), "hang"),
    ]
    bench.worker()
    bench.order(gang(1, trainer(*words)))

    def moved(size: int) -> bool:
        rank = bench.rank()
        return rank is not None and rank.moved == size

    eventually(lambda: moved(1000), "the first bytes")
    for file, size in ((files[0], 5 << 30), (files[1], 6 << 30)):
        file.touch()
        eventually(lambda size=size: moved(size), f"{size} bytes moved", seconds=1.0)
    files[2].touch()
    eventually(lambda: (rank := bench.rank()) and rank.completed == 1 and rank.moved == 0, "a phase without bytes")
