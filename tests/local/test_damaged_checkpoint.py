"""The newest checkpoints were damaged on disk: always noticed, set aside and kept, the one before them is used."""

from __future__ import annotations

from pathlib import Path

from tests.local.killable import STEPS, killable
from tests.local.run_process import RunProcess, running


def test_damage_is_noticed_at_the_survey_or_at_the_restore_and_the_step_before_is_used(
    unbroken: dict[int, float], tmp_path: Path
) -> None:
    with running(tmp_path, killable(), "--fleet", "2x1") as run:
        run.until(lambda: len(finished_steps(run)) >= 3 and run.step() > 20, "three checkpoints are there")
        assert run.call("stop").returncode == 0
        assert run.wait(60) == 0, run.story()
        third, second, newest = finished_steps(run)[-3:]
        truncate_metadata(run.directory / "checkpoints" / "a0001" / str(newest))
        flip_a_bit_of_the_data(run.directory / "checkpoints" / "a0001" / str(second))

        run.start()
        assert run.wait(240) == 0, run.story()
        resumed = [attempt["resume"] for attempt in run.attempts()]
        assert resumed == [None, f"1:{second}", f"1:{third}"], (
            "the first damage is seen before a start, the second at it"
        )
        (incident,) = run.incidents()
        assert incident["verdict"]["reason"] == "CheckpointDamaged"
        assert f"a1:{second}" in incident["verdict"]["because"]
        kept = {path.name for path in (run.directory / "checkpoints" / "set-aside" / "a0001").iterdir()}
        assert kept == {str(newest), str(second)}
        assert run.losses() == unbroken
        assert sorted(run.losses()) == list(range(1, STEPS + 1))


def finished_steps(run: RunProcess) -> list[int]:
    found = (run.directory / "checkpoints" / "a0001").glob("*/manifest.json")
    return sorted(int(path.parent.name) for path in found)


def truncate_metadata(step: Path) -> None:
    path = next(path for path in sorted(step.rglob("zarr.json")) if path.stat().st_size)
    path.write_bytes(path.read_bytes()[:-1])


def flip_a_bit_of_the_data(step: Path) -> None:
    chunks = [path for path in step.rglob("*") if path.is_file() and "c" in path.relative_to(step).parts]
    path = max(chunks, key=lambda path: path.stat().st_size)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 4
    path.write_bytes(content)
