"""Faults on order: scheduled at a step, or sent from another terminal through the run's directory."""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from supervisor.local.fleet import Fleet
from supervisor.local.host import LocalHost
from supervisor.local.rundir import RunDirectory, write_json
from supervisor.wire.json_file import read_json
from supervisor.wire.text import printable

VERBS: dict[str, str] = {
    "kill-rank": "SIGKILL to one rank (RANK)",
    "hang-rank": "SIGSTOP to one rank: it hangs, its worker lives (RANK)",
    "kill-node": "the node loses power (NODE)",
    "kill-rack": "the whole rack loses power (RACK)",
    "fail-rank": "the trainer of one rank raises an exception (RANK)",
    "revive-node": "a dead node comes back (NODE)",
    "revive-rack": "a dead rack comes back (RACK)",
}
LOOK_EVERY = 0.05  # seconds
SHOWN_TARGETS = 32
MAX_ORDER_BYTES = 64 << 10
log = logging.getLogger(__name__)


class BadChaos(ValueError):
    """A chaos order that cannot be understood; the text says what is allowed."""


@dataclass(frozen=True, slots=True)
class ChaosOrder:
    """`at_step`: once the run has completed that step; None: now."""

    verb: str
    target: str
    at_step: int | None = None

    def __str__(self) -> str:
        return f"{self.verb} {self.target}" + (f" @step {self.at_step}" if self.at_step is not None else "")


def parse_chaos(text: str) -> ChaosOrder:
    """`VERB TARGET [@step N]`. Raises `BadChaos`."""
    match = re.fullmatch(r"\s*([a-z-]+)\s+(\S{1,64})(?:\s+@\s*step\s+([0-9]{1,12}))?\s*", text)
    if match is None:
        raise BadChaos(f"found {text[:80]!r}, allowed is VERB TARGET [@step N], such as 'kill-node r0n1 @step 30'")
    verb, target, step = match[1], match[2], match[3]
    if verb not in VERBS:
        raise BadChaos(f"found the verb {verb!r}, allowed are: {', '.join(VERBS)}")
    kind = verb.rsplit("-", 1)[1]
    pattern, example = {"rank": (r"[0-9]+", "3"), "node": (r"r[0-9]+n[0-9]+", "r0n1"), "rack": (r"r[0-9]+", "r1")}[kind]
    if not re.fullmatch(pattern, target):
        raise BadChaos(f"found the target {target!r}, allowed after {verb} is a {kind}, such as {example}")
    return ChaosOrder(verb, target, int(step) if step is not None else None)


def check_target(order: ChaosOrder, fleet: Fleet, ranks: int) -> None:
    """A node or rack that the fleet lacks, or a rank that none of `ranks` is, is a typo. Raises `BadChaos`."""
    nodes = fleet.nodes()
    known = {
        "node": [node.name for node in nodes],
        "rack": list(dict.fromkeys(node.rack for node in nodes)),
        "rank": [str(rank) for rank in range(ranks)],
    }[order.verb.rsplit("-", 1)[1]]
    if known and order.target not in known:
        have = ", ".join(known) if len(known) <= SHOWN_TARGETS else f"{known[0]} to {known[-1]}"
        raise BadChaos(f"found the target {order.target}, there are: {have}")


def send(directory: RunDirectory, order: ChaosOrder, name: str | None = None) -> Path:
    """Leave an order for the run's supervisor. The file is renamed to `.done` once it is carried out."""
    path = directory.chaos / f"{name or f'{time.time_ns()}-{order.verb}'}.json"
    if not path.exists() and not done_path(path).exists():
        write_json(path, {"verb": order.verb, "target": order.target, "at": order.at_step})
    return path


def done_path(path: Path) -> Path:
    return path.with_suffix(".done")


class Chaos:
    """Carries out the orders in the run's directory, on a thread of its own."""

    def __init__(self, directory: RunDirectory, host: LocalHost, step: Callable[[], int]) -> None:
        self._directory = directory
        self._host = host
        self._step = step
        self._done: set[str] = set()  # what is done and could not be marked so
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="chaos", daemon=True)

    def start(self) -> None:
        """What was ordered while nobody supervised is done first: a revived node is there before placement looks."""
        self._look_at_all()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._stop.wait(LOOK_EVERY):
            self._look_at_all()

    def _look_at_all(self) -> None:
        for path in sorted(self._directory.chaos.glob("*.json")):
            if path.name not in self._done:
                self._look(path)

    def _look(self, path: Path) -> None:
        try:
            data = read_json(path, MAX_ORDER_BYTES)
            order = parse_chaos(f"{data['verb']} {data['target']}")
            at = data.get("at")
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("chaos order %s cannot be read and is put aside: %s", path.name, printable(str(error), 200))
            self._put_aside(path)
            return
        if isinstance(at, int) and self._step() < at:
            return
        log.warning("chaos: %s", order)
        self._carry_out(order)
        self._put_aside(path)

    def _put_aside(self, path: Path) -> None:
        try:
            path.rename(done_path(path))
        except OSError as error:  # a disk that became read-only, say: it must not be carried out again and again
            log.error("chaos order %s cannot be marked as done: %s", path.name, error)
            self._done.add(path.name)

    def _carry_out(self, order: ChaosOrder) -> None:
        host = self._host
        match order.verb:
            case "kill-node":
                host.kill_nodes(self._nodes((order.target,)))
            case "kill-rack":
                host.kill_nodes(host.fleet.in_rack(order.target))
            case "revive-node":
                host.revive_nodes(self._nodes((order.target,)))
            case "revive-rack":
                host.revive_nodes(host.fleet.in_rack(order.target))
            case "kill-rank":
                self._signal_rank(int(order.target), signal.SIGKILL)
            case "hang-rank":
                self._signal_rank(int(order.target), signal.SIGSTOP)
            case "fail-rank":
                host.fail_rank(int(order.target))

    def _nodes(self, names: tuple[str, ...]) -> tuple[str, ...]:
        known = tuple(name for name in names if name in self._host.fleet.names())
        if known != names:
            log.warning("chaos: the fleet has no node %s", ", ".join(set(names) - set(known)))
        return known

    def _signal_rank(self, rank: int, number: signal.Signals) -> None:
        pid = self._host.rank_pid(rank)
        if pid is None:
            log.warning("chaos: no rank %d lives now", rank)
            return
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            log.warning("chaos: rank %d had ended already", rank)
