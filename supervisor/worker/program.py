"""Starting modules of ours in processes of their own: from a source tree, an installed package or the zipapp alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from supervisor.wire.contract import CONTRACT_NAMES
from supervisor.worker.descendants import ENV_MARK

_ROOT = str(Path(__file__).parents[2])  # of the package `supervisor`; the zipapp's own path inside one


def rank_base_environment(workdir: Path) -> dict[str, str]:
    """What every process that we start inherits, before the manifest's and the contract's variables."""
    inherited = {name: value for name, value in os.environ.items() if name not in CONTRACT_NAMES}
    return {**inherited, ENV_MARK: str(workdir), "PYTHONUNBUFFERED": "1"}


def launch(
    trainer: Mapping[str, Any], environment: Mapping[str, str], directory: str | None, output: int
) -> subprocess.Popen[bytes]:
    """Start a trainer through the launcher, in a session of its own. Call from the main thread: the launcher dies with
    the thread that started it. `trainer`: the members of TrainerCommand. Raises OSError."""
    assignment = {"trainer": dict(trainer), "environment": dict(environment), "root": _ROOT}
    descriptor = os.memfd_create("assignment", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(json.dumps(assignment).encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
        arguments = ["supervisor.worker.launcher", str(descriptor), str(os.getpid())]
        return _start(arguments, environment, directory, output, (descriptor,))
    finally:
        os.close(descriptor)


def start_task(arguments: list[str], environment: Mapping[str, str], output: int) -> subprocess.Popen[bytes]:
    """Start `supervisor.worker.task`; the same rules as for `launch`."""
    return _start(["supervisor.worker.task", *arguments, str(os.getpid())], environment, None, output, ())


def _start(
    arguments: list[str], environment: Mapping[str, str], directory: str | None, output: int, keep: tuple[int, ...]
) -> subprocess.Popen[bytes]:
    path = [_ROOT, *filter(None, [environment.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-m", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd=directory,
        env={**environment, "PYTHONPATH": os.pathsep.join(path)},
        start_new_session=True,
        pass_fds=keep,
    )
