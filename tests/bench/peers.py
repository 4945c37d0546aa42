"""Launchers that people use, each with `peer_torch.py` in an environment of its own (`make bench-peers`)."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.bench.steps import Recovered, Step, holder_of, json_lines
from tests.bench.system import HANG, KILL, RANKS
from tests.bench.trainer import REPOSITORY

BIN = REPOSITORY / ".bench-venv" / "bin"
SCRIPT = str(Path(__file__).with_name("peer_torch.py"))
MARK = "MARIN_BENCH_FOLDER"  # in the environment of all that a peer starts; some leave its process group


class Peer:
    """`rank-N.jsonl` in the folder holds the steps that rank N completed."""

    name = ""
    faults: Sequence[str] = (KILL, HANG)
    needs: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._folder = Path()
        self._processes: list[subprocess.Popen[bytes]] = []

    def missing(self) -> str:
        """Also says so where a program is there and does not even start."""
        for program in self.needs:
            if not (BIN / program).exists():
                return f"not installed: no {program}; make bench-peers"
            tried = subprocess.run(
                [str(BIN / program), "--help"], capture_output=True, text=True, timeout=120, check=False
            )
            if tried.returncode != 0:
                return f"{program} does not start: {(tried.stderr.strip().splitlines() or ['?'])[-1][:160]}"
        return ""

    def start(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True)
        self._launch()

    def steps(self) -> list[Step]:
        lines = [line for path in self._folder.glob("rank-*.jsonl") for line in json_lines(path)]
        return sorted((Step(e["time"], e["step"], e["incarnation"]) for e in lines), key=lambda step: step.time)

    def rank_pid(self, rank: int) -> int | None:
        return holder_of(self._folder / f"rank-{rank}.jsonl")

    def lose_host(self) -> float:
        raise NotImplementedError(f"{self.name} is not measured with fewer ranks")

    def stages(self, fault_at: float, recovery: Recovered) -> dict[str, float]:
        return {}

    def stop(self) -> None:
        for pid in _marked(self._folder):
            _kill(pid)
        for process in self._processes:
            process.wait()
        self._processes = []

    def story(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-1500:] for path in self._folder.glob("output-*"))

    def _launch(self) -> None:
        raise NotImplementedError

    def _run(self, name: str, command: Sequence[str], **variables: str) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", MARK: str(self._folder), **variables}
        with (self._folder / f"output-{name}").open("wb") as output:
            self._processes.append(
                subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
            )


class Torchrun(Peer):
    name = "torchrun"
    needs = ("torchrun",)

    def _launch(self) -> None:
        self._run("agent", [str(BIN / "torchrun"), *_gang_options(), SCRIPT, str(self._folder), "torchrun"])


class FtLauncher(Peer):
    name = "NVRx ft_launcher"
    needs = ("ft_launcher",)

    def _launch(self) -> None:
        heartbeat = ["--ft-rank-heartbeat-timeout", "10", "--ft-initial-rank-heartbeat-timeout", "60"]
        command = [str(BIN / "ft_launcher"), *_gang_options(), *heartbeat, "--ignore-missing-fault-tol-cfg"]
        self._run("agent", [*command, SCRIPT, str(self._folder), "nvrx"])


class TorchFt(Peer):
    """Three replica groups of one rank; whatever ends is started again by a loop, as its manual's launchers do."""

    name = "torchft"
    needs = ("torchft_lighthouse",)

    def _launch(self) -> None:
        port = _free_port()
        lighthouse = [str(BIN / "torchft_lighthouse"), "--bind", f"127.0.0.1:{port}", "--min_replicas", "2"]
        self._run("lighthouse", [*lighthouse, "--join_timeout_ms", "1000", "--heartbeat_timeout_ms", "1000"])
        for rank in range(RANKS):
            trainer = [str(BIN / "python"), SCRIPT, str(self._folder), "torchft"]
            again = ["sh", "-c", 'while :; do "$@"; done', "sh", *trainer]
            self._run(f"{rank}", again, REPLICA=str(rank), TORCHFT_LIGHTHOUSE=f"http://127.0.0.1:{port}")


PEERS: tuple[type[Peer], ...] = (Torchrun, FtLauncher, TorchFt)


def _gang_options() -> list[str]:
    port = str(_free_port())
    where = ["--nnodes", "1", "--master-addr", "127.0.0.1", "--master-port", port]
    return [*where, "--nproc-per-node", str(RANKS), "--max-restarts", "100", "--monitor-interval", "0.1"]


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _marked(folder: Path) -> list[int]:
    wanted = f"{MARK}={folder}".encode()
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and wanted in _environment(name)]


def _environment(pid: str) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
