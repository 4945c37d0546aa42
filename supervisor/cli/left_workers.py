"""Workers that live on after their supervisor has died."""

from __future__ import annotations

import os

from supervisor.local.rundir import RunDirectory
from supervisor.local.worker_processes import WorkerProcesses


def living_workers(directory: RunDirectory) -> list[str]:
    """The nodes of this run whose worker lives on this machine."""
    processes = WorkerProcesses(directory, dict(os.environ))
    folders = sorted(directory.nodes.iterdir()) if directory.nodes.is_dir() else []
    return [folder.name for folder in folders if folder.is_dir() and processes.find(folder.name) is not None]
