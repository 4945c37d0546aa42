"""Single processes: layout checks, and mistakes that end a rank before or after JAX is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.training.gang_of_ranks import REPOSITORY, base_environment, read_events

ONE = {"racks": 1, "nodesPerRack": 1, "ranksPerNode": 1}
CASES = [
    (ONE, True, 1, "1 microbatches of 8 rows on each rank, 0 rows of padding in all"),
    ({"racks": 3, "nodesPerRack": 2, "ranksPerNode": 1}, True, 1, "2 rows on each rank, 4 rows of padding"),
    ({"racks": 1, "nodesPerRack": 3, "ranksPerNode": 1}, False, None, "model.experts (4) does not divide over the 3"),
    ({"racks": 5, "nodesPerRack": 2, "ranksPerNode": 1}, False, None, "10 ranks would share data.global_batch of 8"),
]


def train(arguments: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the trainer, noting every module that it imports."""
    return subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "training.train", *arguments],
        env=base_environment() | environment,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
    )


def said(result: subprocess.CompletedProcess[str]) -> str:
    """What a person reads on stderr."""
    return "\n".join(line for line in result.stderr.splitlines() if not line.startswith("import time:"))


def imported(result: subprocess.CompletedProcess[str]) -> set[str]:
    lines = (line for line in result.stderr.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


def check(folder: Path, layouts: list[dict[str, int]], *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "layouts").write_text("".join(json.dumps(layout) + "\n" for layout in layouts))
    environment = {"MARIN_SUP_CHECK": str(folder / "layouts"), "MARIN_SUP_EVENTS": str(folder / "events")}
    return train(["--config", "tiny", *arguments], environment)


def test_a_layout_check_judges_each_layout_without_jax(tmp_path: Path) -> None:
    result = check(tmp_path, [layout for layout, *_ in CASES])
    assert result.returncode == 78
    assert "yaml" in imported(result), "the check sees what is imported"
    assert "jax" not in imported(result)
    answers = read_events(tmp_path / "events")
    assert len(answers) == len(CASES)
    for answer, (layout, fits, microbatches, reason) in zip(answers, CASES, strict=True):
        assert (answer["layout"], answer["fits"], answer["microbatches"]) == (layout, fits, microbatches)
        assert reason in answer["reason"]
        assert fits == (answer["memoryBytes"] is not None)


def test_a_layout_check_passes_when_all_fit(tmp_path: Path) -> None:
    assert check(tmp_path, [ONE]).returncode == 0


def test_a_layout_that_needs_more_memory_than_a_device_has_is_refused(tmp_path: Path) -> None:
    assert check(tmp_path, [ONE], "--set", "device.memory_bytes=100000").returncode == 78
    assert "device.memory_bytes is 100000" in read_events(tmp_path / "events")[0]["reason"]


@pytest.mark.parametrize(
    ("arguments", "code", "alarm", "message"),
    [
        (["--config", "tiny", "--data", "{folder}/empty"], 65, "data", "empty: empty; name files with text in them"),
        (["--config", "tiny", "--data", "{folder}/binary"], 65, "data", "a binary file"),
        (["--config", "tinny"], 78, None, "did you mean 'tiny'?"),
        (["--config", "tiny", "--set", "steps=0"], 78, None, "steps: found 0, allowed an integer of at least 1"),
        (["--confg", "tiny"], 78, None, "usage: python -m training.train"),
    ],
    ids=["an empty data file", "a binary data file", "an unknown config", "a bad setting", "an unknown option"],
)
def test_bad_input_gets_one_clear_message(
    tmp_path: Path, arguments: list[str], code: int, alarm: str | None, message: str
) -> None:
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0")
    arguments = [argument.format(folder=tmp_path) for argument in arguments]
    result = train(arguments, {"MARIN_SUP_EVENTS": str(tmp_path / "events")})
    assert result.returncode == code, result.stderr
    assert message in said(result)
    assert "Traceback" not in said(result)
    assert "jax" not in imported(result)
    events = read_events(tmp_path / "events")
    assert [e["kind"] for e in events if e["event"] == "alarm"] == ([alarm] if alarm else [])
    assert events[-1]["phase"] == "exit"
