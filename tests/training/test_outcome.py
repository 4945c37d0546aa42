"""Ways out of a rank: exit codes, alarms, events to a reader that leaves, and what one step costs."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import jax
import pytest

from training.checkpoint import CheckpointDamaged, CheckpointForeign
from training.config import ConfigError, load_config
from training.contract import Contract, Layout
from training.events import LINE_BYTES_MAX, Events
from training.flops import flops_per_token
from training.mesh import make_mesh
from training.outcome import DataError, NonFiniteLoss, StorageFailed, judge
from training.saves import Saves
from training.step import init_state

LOST = "UNKNOWN: Gloo all-reduce failed: Read error [127.0.0.1]:31862: Connection reset by peer"
GONE = "UNAVAILABLE: Failed to send RPC to coordination service."


@pytest.mark.parametrize(
    ("error", "code", "alarm", "where"),
    [
        (ConfigError("steps: missing"), 78, None, (None, None)),
        (DataError("x: empty"), 65, "data", (None, None)),
        (NonFiniteLoss(7, float("nan")), 70, "non-finite-loss", (None, 7)),
        (StorageFailed(9, OSError(28, "No space left on device")), 74, "storage", (None, 9)),
        (CheckpointDamaged(3, 40, "a chunk is bad"), 74, "checkpoint-damaged", (3, 40)),
        (CheckpointForeign(3, 40, "another model"), 78, "checkpoint-foreign", (3, 40)),
        (jax.errors.JaxRuntimeError(LOST), 75, "peer-failed", (None, None)),
        (jax.errors.JaxRuntimeError(GONE), 75, "peer-failed", (None, None)),
        (jax.errors.JaxRuntimeError("INTERNAL: out of registers"), 70, None, (None, None)),
        (ValueError(LOST), 75, "peer-failed", (None, None)),
        (RuntimeError("Connection reset by peer"), 70, None, (None, None)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_every_way_out_has_its_code_and_alarm(
    error: Exception, code: int, alarm: str | None, where: tuple[int | None, int | None]
) -> None:
    outcome = judge(error)
    assert (outcome.code, outcome.alarm, (outcome.attempt, outcome.step)) == (code, alarm, where)
    assert str(error) in outcome.message


def test_a_checkpoint_directory_that_cannot_be_written_is_a_fault_of_storage(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    config = load_config("tiny", ("model.layers=1", "model.width=16"))
    contract = Contract(checkpoints=tmp_path / "file" / "checkpoints")
    events = Events(tmp_path / "events")
    state = init_state(config, make_mesh(Layout(1, 1, 1), jax.devices()[:1]))
    with pytest.raises(StorageFailed, match="step 5 could not be written") as raised:
        Saves(config, contract, events, start=0).save(5, state)
    assert judge(raised.value).code == 74
    said = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert said[-1]["state"] == "failed"


def test_events_of_several_threads_stay_whole_lines(tmp_path: Path) -> None:
    events = Events(tmp_path / "events")
    threads = [
        threading.Thread(target=lambda: [events.phase("train", "x" * 900) for _ in range(200)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = (tmp_path / "events").read_text().splitlines()
    assert len(lines) == 800
    assert all(json.loads(line)["reason"] == "x" * 900 for line in lines)


def test_texts_are_bounded_and_odd_numbers_become_null(tmp_path: Path) -> None:
    events = Events(tmp_path / "events")
    events.alarm("other", "é" * 5000)
    events.emit({"event": "step", "step": 1, "state": "completed", "metrics": {"loss": float("inf")}})
    alarm, step = (json.loads(line) for line in (tmp_path / "events").read_text().splitlines())
    assert len(alarm["message"]) == 1000
    assert alarm["message"].endswith("é...")
    assert step["metrics"] == {"loss": None}
    with pytest.raises(ValueError, match=str(LINE_BYTES_MAX)):
        events.emit({"event": "step", "metrics": {f"m{i}": 0.1 for i in range(5000)}})


def test_a_reader_that_leaves_a_pipe_does_not_end_the_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    events = Events(tmp_path / "pipe")
    events.phase("train")
    assert json.loads(os.read(reader, 4096))["phase"] == "train"
    os.close(reader)
    events.phase("eval")
    events.phase("exit")
    assert capsys.readouterr().err.count("training goes on") == 1


def test_the_cost_of_a_token_is_the_sum_over_its_matrix_products() -> None:
    config = load_config("tiny")
    products = [(32, 2 * 16), (32, 16), (32, 16), (2 * 16, 32), (32, 4)]  # query, key, value, output, router
    products += 3 * 3 * [(32, 32)]  # one shared and two routed experts, each gate, up, down
    attention = 2 * (2 * 32 * 2 * 16)  # scores and mixing over 32 positions, two heads of 16
    forward = 2 * (sum(2 * a * b for a, b in products) + attention) + 2 * 32 * 256
    assert flops_per_token(config) == 3 * forward
