"""What the launcher makes of a trainer: its exit codes, its peers' failures, and JAX without arguments."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zipapp
from pathlib import Path

import pytest

from supervisor.wire.messages import TrainerCommand
from supervisor.worker.peer_failure import peer_failure
from tests.worker.bench import ROOT, Bench, agent_of, eventually, gang

CPU = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "OMP_NUM_THREADS": "1"}


def module(directory: Path, text: str, **members: object) -> TrainerCommand:
    (directory / "program.py").write_text(text)
    return TrainerCommand(module="program", working_directory=str(directory), **members)  # type: ignore[arg-type]


class JaxRuntimeError(RuntimeError):
    """Named as JAX's own; the launcher must not import JAX to know one."""


@pytest.mark.parametrize(
    ("text", "follower"),
    [
        ("FAILED_PRECONDITION: Gloo all-reduce failed: pair.cc:547] Connection closed by peer [127.0.0.1]:2911", True),
        ("UNAVAILABLE: Failed to send RPC to coordination service.", True),
        ("DEADLINE_EXCEEDED: Barrier timed out. Id: PjRT_Client_Connect", True),
        ("RESOURCE_EXHAUSTED: Out of memory allocating 1024 bytes", False),
        ("INVALID_ARGUMENT: Shapes must match", False),
    ],
)
def test_only_a_peers_failure_makes_a_follower(text: str, follower: bool) -> None:
    for kind in (JaxRuntimeError, ValueError):
        assert (peer_failure(kind(text)) is not None) == follower
    assert peer_failure(ValueError(f"quoted: {text}")) is None, "the trainer's own words"
    assert peer_failure(OSError(text)) is None


def test_a_peers_failure_is_an_alarm_and_exit_75_even_behind_another_exception(bench: Bench, tmp_path: Path) -> None:
    text = """
class JaxRuntimeError(RuntimeError): pass
import atexit, time
atexit.register(lambda: time.sleep(100))  # JAX's shutdown barrier waits for peers that are gone
try:
    raise JaxRuntimeError("UNKNOWN: Gloo all-reduce failed: Connection closed by peer")
except JaxRuntimeError as error:
    raise RuntimeError("step 3") from error
"""
    bench.worker()
    bench.order(gang(1, module(tmp_path, text)))
    ended = bench.until_exit().exit
    assert ended.code == 75
    assert "RuntimeError: step 3" in ended.tail
    alarm = eventually(lambda: next((e.event for e in bench.events), None), "the alarm")
    assert (alarm["event"], alarm["kind"]) == ("alarm", "peer-failed")
    assert "Connection closed by peer" in alarm["message"]


def test_an_import_error_inside_the_trainer_is_the_programs_and_shows_where(bench: Bench, tmp_path: Path) -> None:
    bench.worker()
    bench.order(gang(1, module(tmp_path, "import no_such_library")))
    ended = bench.until_exit().exit
    assert ended.code == 70
    assert "No module named 'no_such_library'" in ended.tail
    assert "program.py" in ended.tail


def test_two_ranks_join_with_an_argument_less_initialize_and_one_follows_the_other_when_it_dies(
    bench: Bench, tmp_path: Path
) -> None:
    text = """
import os, signal
import jax
jax.distributed.initialize()
import jax.numpy as jnp
from jax.experimental import multihost_utils
total = multihost_utils.process_allgather(jnp.ones(3) * (jax.process_index() + 1)).sum()
print("ranks", jax.process_count(), "me", jax.process_index(), "total", int(total), flush=True)
if jax.process_index() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
while True:
    multihost_utils.process_allgather(jnp.ones(3))
"""
    bench.worker()
    offer = bench.hub.report("r0n1").offer or eventually(lambda: bench.hub.report("r0n1").offer, "an offer")
    # looks like a Kubernetes pod and a SLURM step to JAX, whose own environments would win
    foreign = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "SLURM_JOB_ID": "1", "SLURM_PROCID": "0", "SLURM_NTASKS": "9"}
    program = module(tmp_path, text, environment={**CPU, **foreign, "SLURM_STEP_NODELIST": "x", "SLURM_LOCALID": "0"})
    bench.order(gang(1, program, (0, 1), coordinator=offer))
    for rank, code, number in ((1, None, 9), (0, 75, None)):
        ended = bench.until_exit(rank, seconds=60).exit
        assert f"ranks 2 me {rank} total 9" in ended.tail
        assert (ended.code, ended.signal) == (code, number), ended.tail
    alarm = eventually(lambda: next((e for e in bench.events if e.event["event"] == "alarm"), None), "the alarm")
    assert (alarm.rank, alarm.event["kind"]) == (0, "peer-failed")
    print(f"what JAX said of the dead peer: {alarm.event['message']}")


def zipped_worker(directory: Path) -> Path:
    """What ships into the trainer's image: wire and worker alone."""
    tree, archive = directory / "tree", directory / "worker.pyz"
    for package in ("supervisor/wire", "supervisor/worker"):
        for path in (ROOT / package).rglob("*.py"):
            target = tree / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    (tree / "supervisor" / "__init__.py").write_text("")
    (tree / "__main__.py").write_text("import runpy; runpy.run_module('supervisor.worker', run_name='__main__')\n")
    zipapp.create_archive(tree, archive)
    return archive


def test_the_worker_runs_from_a_zipapp_and_imports_the_standard_library_alone(tmp_path: Path) -> None:
    """In isolated mode without site-packages: what is not in the standard library cannot even be found."""
    archive = zipped_worker(tmp_path)
    files = [path.relative_to(ROOT) for path in (ROOT / "supervisor/worker").rglob("*.py")]
    names = [".".join(path.with_suffix("").parts) for path in files if path.stem not in ("__main__", "jax_cluster")]
    imports = "; ".join(f"import {name.removesuffix('.__init__')}" for name in names)
    script = (
        f"import sys; sys.path.insert(0, {str(archive)!r}); {imports}; import supervisor.wire.server; "
        "known = {*sys.stdlib_module_names, 'supervisor', '__main__'}; "
        "print([name for name in sys.modules if name.partition('.')[0] not in known])"
    )
    done = subprocess.run([sys.executable, "-S", "-I", "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
    usage = subprocess.run([sys.executable, "-S", "-I", archive, "--help"], capture_output=True, text=True, check=False)
    assert "--workdir" in usage.stdout


def test_a_rank_starts_from_the_zipapp_as_well(bench: Bench, tmp_path: Path) -> None:
    archive = zipped_worker(tmp_path)
    bench.worker(program=[str(archive)])
    text = "import supervisor, sys; print(supervisor.__file__, sys.path[-1])"
    bench.order(gang(1, module(tmp_path, text)))
    ended = bench.until_exit().exit
    assert ended.code == 0, ended.tail
    assert ended.tail.startswith(f"{archive}/supervisor/__init__.py")
    assert ended.tail.strip().endswith(str(archive)), "our archive comes last: the trainer's own packages win"


def test_a_worker_that_waits_costs_next_to_nothing(bench: Bench) -> None:
    guard = bench.worker()
    agent = Path(f"/proc/{agent_of(guard.pid)}")

    def cpu_seconds() -> float:
        fields = (agent / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before, began = cpu_seconds(), time.monotonic()
    eventually(lambda: time.monotonic() - began > 2.5, "two and a half idle seconds")
    share = (cpu_seconds() - before) / (time.monotonic() - began)
    resident = [int((p / "statm").read_text().split()[1]) * 4 // 1024 for p in (agent, Path(f"/proc/{guard.pid}"))]
    print(f"idle agent: {100 * share:.2f} % of a core; resident: agent {resident[0]} MiB, guard {resident[1]} MiB")
    assert share < 0.05
    assert sum(resident) < 80
