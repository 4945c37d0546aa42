"""Two processes save together, one is killed while a save is in flight, and the next gang resumes the step before."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.training.checkpoint_states import FINGERPRINT, like, mesh, same
from training.checkpoint import CheckpointDamaged, restore, verify

REPOSITORY = Path(__file__).parents[2]
GANG_SECONDS = 60


def test_a_rank_killed_in_a_save_leaves_a_whole_step_or_none_and_the_step_before_restores(tmp_path: Path) -> None:
    gang(tmp_path, attempt=1, restore_from=None, steps=[1, 2], dies=1)
    assert whole(tmp_path, 1, 1), "the step before must be there"
    whole_or_none(tmp_path, 1, 2)
    assert same(restore(tmp_path, 1, 1, like(mesh(1, 1)), FINGERPRINT), seed=1), "two ranks' parts, onto one device"

    gang(tmp_path, attempt=2, restore_from=[1, 1], steps=[3, 4], dies=0)
    restored = [event["restored"] for rank in (0, 1) for event in said(tmp_path, 2, rank) if "restored" in event]
    assert restored == [True, True]
    assert same(restore(tmp_path, 2, 3, like(mesh(2, 2)), FINGERPRINT), seed=3)
    assert json.loads((tmp_path / "a0002" / "3" / "manifest.json").read_text())["parent"] == "1:1"
    whole_or_none(tmp_path, 2, 4)

    for attempt, step in ((1, 1), (2, 3)):
        for rank, expected in ((0, ["started", "committed"]), (1, [])):
            states = [event["state"] for event in said(tmp_path, attempt, rank) if event.get("step") == step]
            assert states == expected, "rank 0 alone speaks for the gang"


def gang(root: Path, attempt: int, restore_from: list[int] | None, steps: list[int], dies: int) -> None:
    """Run two ranks until the one that `dies` is gone and the other has exited, or been given up by the supervisor."""
    given = {"ranks": 2, "root": str(root), "attempt": attempt, "restore": restore_from, "steps": steps, "dies": dies}
    given["coordinator"] = f"127.0.0.1:{free_port()}"
    environment = os.environ | {
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
        "JAX_PLATFORMS": "cpu",
        "OMP_NUM_THREADS": "1",
    }
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.training.checkpoint_rank", json.dumps(given | {"rank": rank})],
            cwd=REPOSITORY,
            env=environment,
            stderr=(root / f"stderr-{attempt}-{rank}").open("w"),
        )
        for rank in (0, 1)
    ]
    try:
        code = ranks[dies].wait(GANG_SECONDS)
        assert code == -signal.SIGKILL, (root / f"stderr-{attempt}-{dies}").read_text()[-2000:]
        give_up(ranks[1 - dies], root, attempt, steps[-1])
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


def give_up(survivor: subprocess.Popen[bytes], root: Path, attempt: int, step: int) -> None:
    """A second to finish what can be finished without the peer; then it is killed, as the supervisor would do."""
    deadline = time.monotonic() + 1.0
    while (
        survivor.poll() is None
        and time.monotonic() < deadline
        and not (directory(root, attempt, step) / "manifest.json").exists()
    ):
        time.sleep(0.02)


def directory(root: Path, attempt: int, step: int) -> Path:
    return root / f"a{attempt:04d}" / str(step)


def whole(root: Path, attempt: int, step: int) -> bool:
    verify(root, attempt, step)
    return True


def whole_or_none(root: Path, attempt: int, step: int) -> None:
    """Never a manifest that does not verify, and never data that is not what was saved."""
    if (directory(root, attempt, step) / "manifest.json").exists():
        assert same(restore(root, attempt, step, like(mesh(1, 2)), FINGERPRINT), seed=step)
        return
    with pytest.raises(CheckpointDamaged, match="never finished"):
        verify(root, attempt, step)


def said(root: Path, attempt: int, rank: int) -> list[dict]:
    return [json.loads(line) for line in (root / f"rank-{attempt}-{rank}.jsonl").read_text().splitlines()]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
