"""Bad input and misbehaving trainers: each a clear sentence or the right rung, nothing lost, no traceback."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
import yaml

from supervisor.local.worker_processes import descendants
from tests.local.run_process import RunProcess, manifest, running


def scripted(*arguments: str, **spec: object) -> dict:
    trainer = {"module": "tests.local.scripted_trainer", "args": list(arguments)}
    one = {"racks": 1, "minRacks": 1, "nodesPerRack": 1, "ranksPerNode": 1, "spares": {"perRack": 0}}
    return manifest("scripted", trainer=trainer, layout=one, recovery={"noProgressLimit": 3}, **spec)


def screen_of(run: RunProcess) -> str:
    text = run.screen.read_text()
    assert "Traceback" not in text, text
    return text


HELD = [
    pytest.param(
        ["--at-once", "--exit", "1"],
        "NoProgress",
        ["3 attempts in a row ended without a newer checkpoint", "exited with 1", "nothing will come of this"],
        id="a trainer that exits at once for ever is held after noProgressLimit attempts",
    ),
    pytest.param(
        ["--at-once", "--exit", "78"],
        "ConfigurationError",
        ["found a mistake in its configuration", "exit 78"],
        id="a configuration error holds the run at once",
    ),
    pytest.param(
        ["--at-once", "--exit", "65"], "DataError", ["cannot use its data"], id="bad data hold the run at once"
    ),
    pytest.param(
        ["--steps", "7", "--exit", "70", "--alarm", "non-finite-loss"],
        "NonFiniteLoss",
        ["as its arguments say", "--from-step"],
        id="a non-finite loss is never just restarted",
    ),
]


@pytest.mark.parametrize(("arguments", "reason", "said"), HELD)
def test_what_a_restart_cannot_heal_is_held(arguments: list[str], reason: str, said: list[str], tmp_path: Path) -> None:
    with running(tmp_path, scripted(*arguments)) as run:
        assert run.wait(60) == 5, run.story()
        text = screen_of(run)
        assert reason in run.reasons()
        for words in [*said, "way out", "marin-sup resume"]:
            assert words in text.replace("\n", " "), text
        assert len(run.attempts()) == (3 if reason == "NoProgress" else 1)


def test_a_trainer_module_that_does_not_exist_is_named(tmp_path: Path) -> None:
    run = manifest("nowhere", racks=1, spares=0, trainer={"module": "no.such.trainer", "layoutCheck": "Off"})
    with running(tmp_path, run) as process:
        assert process.wait(60) == 5, process.story()
        text = screen_of(process)
        assert "no.such.trainer" in text
        assert "ConfigurationError" in process.reasons()


def test_a_layout_that_the_model_does_not_fit_is_refused_before_anything_trains(tmp_path: Path) -> None:
    trainer = {"module": "training.train", "args": ["--config", "tiny"]}  # 4 experts do not divide among 3 ranks
    with running(tmp_path, manifest("odd", racks=2, nodes=3, spares=0, trainer=trainer)) as process:
        assert process.wait(60) == 5, process.story()
        assert "LayoutRefused" in process.reasons()
        assert "experts" in screen_of(process)
        assert process.attempts() == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"", "empty", id="an empty data file is named"),
        pytest.param(bytes(range(256)) * 64, "text", id="a binary data file is named"),
    ],
)
def test_unusable_data_hold_the_run(content: bytes, said: str, tmp_path: Path) -> None:
    data = tmp_path / "data.txt"
    data.write_bytes(content)
    with running(tmp_path, manifest("data", racks=1, spares=0), "--data", str(data)) as process:
        assert process.wait(90) == 5, process.story()
        text = screen_of(process)
        assert "DataError" in process.reasons()
        assert said in text
        assert "data.txt" in text.replace("\n", "")


def test_garbage_in_the_event_file_and_a_flood_of_output_change_nothing(tmp_path: Path) -> None:
    with running(tmp_path, scripted("--garbage", "5", "--shout", "200", "--stale")) as run:
        assert run.wait(90) == 0, run.story()
        screen_of(run)
        assert run.losses() == {step: 1.0 / step for step in range(1, 41)}
        logs = sum(path.stat().st_size for path in run.directory.glob("nodes/*/a0001/rank-*/output*"))
        assert logs < 20 << 20, "output on disk is bounded"
        status = json.loads((run.directory / "status.json").read_text())["status"]
        assert status["lastCheckpoint"]["attempt"] == 1, "a commit in another attempt's name counts nothing"


def test_a_directory_of_another_run_is_refused(tmp_path: Path) -> None:
    with running(tmp_path, scripted()) as run:
        assert run.wait(60) == 0, run.story()
        other = scripted()
        other["metadata"]["name"] = "other"
        run.file.write_text(yaml.safe_dump(other))
        assert run.start().wait(30) == 2
        assert "holds the run scripted" in screen_of(run)
        assert "--workdir" in screen_of(run)


def test_a_missing_working_directory_of_the_trainer_is_named(tmp_path: Path) -> None:
    nowhere = scripted()
    nowhere["spec"]["trainer"]["workingDirectory"] = "/nowhere/at/all"
    with running(tmp_path, nowhere) as run:
        assert run.wait(60) == 5, run.story()
        assert "/nowhere/at/all" in screen_of(run)


def lives(pid: int) -> bool:
    """A zombie, which has no command line, does not."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except OSError:
        return False


def test_a_worker_that_hangs_while_its_supervisor_is_replaced_is_killed_and_replaced(tmp_path: Path) -> None:
    with running(tmp_path, scripted("--steps", "100000", "--step-seconds", "0.02")) as run:
        run.until(lambda: run.step() > 2, "it trains")
        hanging = run.worker_pids()["r0n0"]
        ranks = descendants(hanging)
        os.kill(ranks[0], signal.SIGSTOP)  # the agent; its rank trains on
        run.kill_supervisor()
        run.start()
        run.until(lambda: len(run.attempts()) == 2, "a new worker has taken its place")
        assert not [pid for pid in (hanging, *ranks) if lives(pid)], "two attempts live"
        assert run.call("stop").returncode == 0
        assert run.wait(60) == 0, run.story()
        screen_of(run)


def test_a_working_directory_in_use_is_refused(tmp_path: Path) -> None:
    with running(tmp_path, scripted("--steps", "4000")) as run:
        run.until(lambda: run.step() > 0, "the first supervisor trains")
        second = RunProcess(tmp_path / "second", scripted())
        second.directory = run.directory
        second.start()
        assert second.wait(30) == 2
        text = screen_of(second)
        assert "a living supervisor" in text
        assert str(run.process.pid) in text
        assert run.process.poll() is None, "the first one is not disturbed"


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    run = RunProcess(tmp_path, scripted())
    run.directory = Path("/proc/marin-sup")
    run.start()
    assert run.wait(30) == 2
    assert "/proc/marin-sup" in screen_of(run)
    assert "--workdir" in screen_of(run)


def test_a_damaged_memory_falls_back_to_the_one_before_and_says_so(tmp_path: Path) -> None:
    with running(tmp_path, scripted("--steps", "200", "--step-seconds", "0.02")) as run:
        run.until(lambda: run.step() > 20, "it trains")
        run.kill_supervisor()
        memory = run.directory / "memory.json"
        memory.write_bytes(memory.read_bytes()[:100])
        run.start()
        assert run.wait(60) == 0, run.story()
        text = screen_of(run)
        assert "memory.json is damaged" in text
        assert "MemoryDamaged" in run.reasons()
        assert sorted(run.losses()) == list(range(1, 201))


def test_a_deleted_memory_never_makes_an_attempt_number_come_back(tmp_path: Path) -> None:
    with running(tmp_path, scripted("--steps", "300", "--step-seconds", "0.02")) as run:
        run.until(lambda: run.step() > 10, "it trains")
        run.call("chaos", "kill-rank", "0")
        run.until(lambda: len(run.attempts()) == 2 and run.step() > 20, "attempt 2 trains")
        run.kill_supervisor()
        for path in run.directory.glob("memory*.json"):
            path.unlink()
        run.start()
        assert run.wait(60) == 0, run.story()
        numbers = [attempt["number"] for attempt in run.attempts()]
        assert numbers == sorted(set(numbers)), "no number came back"
        assert numbers[-1] >= 3
        screen_of(run)


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    with running(tmp_path, manifest("model", racks=1, spares=0)) as run:
        run.until(lambda: len(run.events("checkpoint")) > 2, "a checkpoint is there")
        assert run.call("stop").returncode == 0
        assert run.wait(60) == 0, run.story()
    other = manifest("model", racks=1, spares=0)
    other["spec"]["trainer"]["args"] += ["--set", "model.width=64"]
    again = RunProcess(tmp_path, other)
    try:
        assert again.start().wait(90) == 5, again.story()
        assert "CheckpointForeign" in again.reasons()
        assert "it was saved by model" in screen_of(again)
    finally:
        again.kill_everything()
