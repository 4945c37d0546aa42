"""What a process imports: commands answer fast, and the worker runs in an image that has nothing of ours installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

_RUN_COMMAND = """
import sys
from supervisor.cli.app import main
sys.argv = ["marin-sup", *sys.argv[1:]]
try:
    main()
finally:
    print("imported:", *sorted({name.partition(".")[0] for name in sys.modules}))
"""

_IMPORT_ALL = """
import importlib, pkgutil, sys
sys.path.insert(0, sys.argv[1])
for package in ("supervisor.wire", "supervisor.worker"):
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        if module.name not in ("supervisor.worker.jax_cluster", "supervisor.worker.__main__"):
            importlib.import_module(module.name)
            print("imported", module.name)
foreign = {name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names - {"supervisor", "__main__"}
ours = {name for name in sys.modules if name.startswith("supervisor.")}
print("foreign:", *sorted(foreign))
print("beyond:", *sorted(n for n in ours if not n.startswith(("supervisor.wire", "supervisor.worker"))))
"""


@pytest.mark.parametrize("arguments", [["--help"], ["status"], ["status", "--help"]], ids=" ".join)
def test_a_command_that_only_reads_imports_no_heavy_library(arguments: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _RUN_COMMAND, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert "Traceback" not in done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("imported:"))
    imported = set(line.split()[1:])
    assert "supervisor" in imported
    assert imported & {"jax", "jaxlib", "orbax", "wandb", "kubernetes", "training", "healthchecks", "pynvml"} == set()


def test_wire_and_worker_need_the_standard_library_alone() -> None:
    # -S and -I leave out every installed package, so an import of one would fail here.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _IMPORT_ALL, str(ROOT)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "imported supervisor.wire.messages" in done.stdout
    assert "imported supervisor.worker." in done.stdout
    assert done.stdout.splitlines()[-2:] == ["foreign:", "beyond:"]
