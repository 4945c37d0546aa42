"""What a standby runs: `python -m supervisor.worker.standby_start FD PARENT CHANNEL`.

It imports the trainer's preload at low priority, says so on the socket CHANNEL, and waits there for the descriptor of
an assignment; then it is that rank. FD holds the settings: `{"root": PATH, "preload": [MODULE, ...], "environment":
{NAME: VALUE}}`.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

from supervisor.wire import contract
from supervisor.worker import launcher

READY, WARM, COLD = b"ready\n", b"warm\n", b"cold "
_DEVICES = ("/dev/nvidia", "/dev/accel", "/dev/dri/", "/dev/kfd", "/dev/vfio/")


def main() -> NoReturn:
    settings, parent = int(sys.argv[1]), int(sys.argv[2])
    began = time.time()
    launcher.tie_to(parent)
    low = _lower_priority()
    prepared, as_started = launcher.read_json(settings), dict(os.environ)
    launcher.set_environment(prepared["environment"])
    with socket.socket(fileno=int(sys.argv[3])) as channel:
        launcher.prepare(prepared["root"], prepared["preload"])
        if (device := held_device()) and not _assigned(channel):
            launcher.refuse(f"trainer.preload: a standby must hold no device, and importing {device}")
        files = _loaded_files()
        channel.sendall(READY)
        assignment = _receive(channel)
        if low:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        if (changed := _changed(files, began)) is not None:
            channel.sendall(COLD + f"{changed} has changed since a standby imported it\n".encode())
            _start_anew(assignment, parent, as_started)
        channel.sendall(WARM)
    launcher.become(launcher.read_json(assignment))


def held_device() -> str | None:
    """Which device the imports have opened, as the end of a sentence; None for none."""
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue  # the descriptor of the listing itself
        if target.startswith(_DEVICES):
            return f"opened {target}"
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is not None and getattr(bridge, "_backends", None):
        return "initialised JAX's backends"
    return None


def _lower_priority() -> bool:
    """Run only when nothing else wants to. Returns whether that is to be undone.

    Leaving SCHED_IDLE needs CAP_SYS_NICE or RLIMIT_NICE (sched_setscheduler(2)); a thread that ends finds out. Without
    them the standby is a batch process, which is never preferred; the worker starts it at a quiet moment anyhow.
    """
    allowed = threading.Event()

    def attempt() -> None:
        try:
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            allowed.set()
        except OSError:
            return

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    try:
        os.sched_setscheduler(0, os.SCHED_IDLE if allowed.is_set() else os.SCHED_BATCH, os.sched_param(0))
    except OSError:  # a sandbox may forbid it
        return False
    return True


def _assigned(channel: socket.socket) -> bool:
    try:
        return bool(channel.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return False


def _receive(channel: socket.socket) -> int:
    _, descriptors, _, _ = socket.recv_fds(channel, 1, 1)
    if not descriptors:
        os._exit(contract.EXIT_DONE)  # the worker has no use for this standby
    return descriptors[0]


def _loaded_files() -> dict[str, tuple[int, int] | None]:
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return {file: _stamp(file) for file in files if isinstance(file, str) and os.path.isabs(file)}


def _stamp(file: str) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _changed(files: dict[str, tuple[int, int] | None], began: float) -> str | None:
    """A file that is no longer what was imported: somebody has corrected the trainer, say."""
    for file, known in files.items():
        now = _stamp(file)
        if now != known or (now is not None and now[0] > began * 1e9):
            return str(Path(file).name)
    return None


def _start_anew(assignment: int, parent: int, environment: dict[str, str]) -> NoReturn:
    """The same process, cold. The death signal stays in force across exec."""
    os.set_inheritable(assignment, True)
    command = [sys.executable, "-m", "supervisor.worker.launcher", str(assignment), str(parent)]
    os.execve(sys.executable, command, environment)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    main()
