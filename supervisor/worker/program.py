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
    descriptor = assignment_file(trainer, environment)
    try:
        arguments = ["supervisor.worker.launcher", str(descriptor), str(os.getpid())]
        return _start(arguments, environment, directory, output, (descriptor,))
    finally:
        os.close(descriptor)


def assignment_file(trainer: Mapping[str, Any], environment: Mapping[str, str]) -> int:
    """A descriptor from which the launcher reads what it is to run. Raises OSError."""
    return _memory_file({"trainer": dict(trainer), "environment": dict(environment), "root": _ROOT})


def start_standby(
    preload: tuple[str, ...], environment: Mapping[str, str], directory: str | None, output: int, channel: int
) -> subprocess.Popen[bytes]:
    """Start `supervisor.worker.standby_start`, which talks on the socket `channel`; the same rules as for `launch`."""
    descriptor = _memory_file({"preload": list(preload), "environment": dict(environment), "root": _ROOT})
    try:
        arguments = ["supervisor.worker.standby_start", str(descriptor), str(os.getpid()), str(channel)]
        return _start(arguments, environment, directory, output, (descriptor, channel))
    finally:
        os.close(descriptor)


def start_task(arguments: list[str], environment: Mapping[str, str], output: int) -> subprocess.Popen[bytes]:
    """Start `supervisor.worker.task`; the same rules as for `launch`."""
    return _start(["supervisor.worker.task", *arguments, str(os.getpid())], environment, None, output, ())


def _memory_file(value: Any) -> int:
    descriptor = os.memfd_create("assignment", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(json.dumps(value).encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


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
