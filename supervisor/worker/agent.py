"""The worker's main loop: orders in, reports out, ranks and tasks in between. One thread touches all of it."""

from __future__ import annotations

import fcntl
import os
import secrets
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supervisor.wire.address import NoAddress, read_address
from supervisor.wire.client import SyncClient, SyncUnavailable
from supervisor.wire.contract import ENV_ATTEMPT, ENV_PROCESS_ID
from supervisor.worker.descendants import environment_of, kill_all_children, kill_each, kill_marked, processes
from supervisor.worker.evidence.gather import gather
from supervisor.worker.gangs import Gangs
from supervisor.worker.guard import ORPHANED
from supervisor.worker.link import OrderThread, ReportThread
from supervisor.worker.rank_process import Surroundings
from supervisor.worker.reporting import Reporting
from supervisor.worker.spool import EventSpool
from supervisor.worker.standbys import Standbys
from supervisor.worker.task_answer import Work
from supervisor.worker.tasks import Tasks
from supervisor.worker.thread_tasks import ThreadTasks
from supervisor.worker.tree import number_of

EXIT_SUPERSEDED = 75  # another worker speaks for this node
LOOK_AGAIN = 30.0  # seconds; everything wakes the loop by itself


@dataclass(frozen=True, slots=True)
class Settings:
    node: str
    sync: Path
    workdir: Path


class Agent:
    def __init__(self, settings: Settings) -> None:
        self._selector = selectors.DefaultSelector()
        self._wake = _WakeUp(self._selector)
        self._spool = EventSpool(settings.workdir / "spool")
        self._standbys = Standbys(settings.workdir, self._selector)
        around = Surroundings(settings.workdir, self._selector, self._spool, self._standbys, self._news)
        self._gangs = Gangs(around)
        self._tasks = Tasks(settings.workdir, self._news, ThreadTasks({"evidence": self._look}, self._wake))
        client = SyncClient(_address_source(settings.sync), settings.node, secrets.token_hex(8))
        self._orders = OrderThread(client, self._wake)
        posting = ReportThread(client, self._wake)
        self._reporting = Reporting(client, posting, self._gangs, self._tasks, self._spool)
        self._signals = 0
        self._leaving: int | None = None  # the exit code, once it is settled that we go
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGCHLD, lambda received, frame: None)  # only to wake the loop
        signal.signal(ORPHANED, _on_orphaned)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def run(self) -> int:
        """Until an order to leave, a signal to stop, or another worker for this node. Returns the exit code."""
        while True:
            now = time.monotonic()
            self._follow_orders(now)
            self._follow_signals(now)
            ended = self._reap(now)
            due = [self._gangs.advance(now)]
            due.append(self._standbys.advance(now, self._gangs.quiet_at()))
            self._tasks.advance()
            if self._leaving is not None and self._gangs.all_ended and self._reporting.told(now):
                return self._leaving
            due.append(self._reporting.advance(time.monotonic()))
            if ended:
                self._kill_strays()  # after the report, which matters more
            self._wait(min((at for at in due if at is not None), default=now + LOOK_AGAIN))

    def _look(self, arguments: dict[str, Any]) -> Work:
        """At the ranks of an attempt: which ones, is known here; what they show takes a moment."""
        ranks = self._gangs.look(number_of(arguments, "attempt"))
        return lambda: gather(ranks)

    def _news(self, urgent: bool) -> None:
        self._reporting.news(urgent)

    def _wait(self, until: float) -> None:
        for key, _ in self._selector.select(max(0.0, until - time.monotonic())):
            callback: Callable[[], object] = key.data
            callback()

    def _follow_orders(self, now: float) -> None:
        order = self._orders.newest()
        if order is not None and self._leaving is None:
            self._standbys.follow(order.standby)
            self._gangs.follow(order, now)
            self._tasks.follow(order.tasks)
            self._reporting.order_taken(order)
            if order.leave:
                self._leave(0, now)
        if self._leaving is None and (self._orders.superseded or self._reporting.superseded):
            print("worker: another worker speaks for this node; stopping", file=sys.stderr, flush=True)
            self._leave(EXIT_SUPERSEDED, now)

    def _follow_signals(self, now: float) -> None:
        if self._signals and self._leaving is None:
            self._leave(0, now)
        if self._signals > 1:
            self._gangs.stop_all(now, grace_ms=0)

    def _leave(self, code: int, now: float) -> None:
        self._leaving = code
        self._gangs.stop_all(now)
        self._tasks.stop_all()
        self._standbys.stop_all()
        self._reporting.leaving()

    def _reap(self, now: float) -> bool:
        """Returns whether a rank or task has ended."""
        ended = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            rank = self._gangs.rank(pid)
            if rank is not None:
                rank.reaped(status, now)
                ended = True
            elif not self._standbys.reaped(pid, status, now):
                ended |= self._tasks.reaped(pid, status)  # or an orphan that came to us and needs no more than this
        return ended

    def _kill_strays(self) -> None:
        """KILL what left a rank's session and has outlived the rank; orphans are our children, as we are subreaper."""
        living, strays = self._gangs.living(), []
        for process in processes():
            if process.parent != os.getpid() or process.pid in self._tasks.pids | self._standbys.pids:
                continue
            if self._gangs.rank(process.pid) is None and _rank_of(process.pid) not in living:
                strays.append(process.pid)
        kill_each(strays)

    def _on_stop(self, received: int, frame: object) -> None:
        self._signals += 1


def _rank_of(pid: int) -> tuple[int, int] | None:
    """(attempt, rank) by the environment that the process was started with."""
    variables = {name: value for name, _, value in (entry.partition(b"=") for entry in environment_of(pid))}
    attempt, rank = variables.get(ENV_ATTEMPT.encode(), b""), variables.get(ENV_PROCESS_ID.encode(), b"")
    return (int(attempt), int(rank)) if attempt.isdigit() and rank.isdigit() else None


def _on_orphaned(received: int, frame: object) -> None:
    """The guard was killed, and so this node counts as dead: nothing may outlive it."""
    kill_all_children(5.0)
    os._exit(128 + signal.SIGKILL)


class _WakeUp:
    """Called from any thread, or by a signal, it ends the main loop's wait."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._receive, self._send = socket.socketpair()
        self._receive.setblocking(False)
        self._send.setblocking(False)
        selector.register(self._receive, selectors.EVENT_READ, self._drain)
        signal.set_wakeup_fd(self._send.fileno(), warn_on_full_buffer=False)

    def __call__(self) -> None:
        try:
            self._send.send(b"\0")
        except BlockingIOError:
            return  # full of earlier calls: the loop will wake

    def _drain(self) -> None:
        try:
            while self._receive.recv(4096):
                continue
        except BlockingIOError:
            return


def _address_source(path: Path) -> Callable[[], tuple[str, int, str]]:
    def source() -> tuple[str, int, str]:
        try:
            address = read_address(path)
        except NoAddress as error:
            raise SyncUnavailable(str(error)) from error
        return address.host, address.port, address.token

    return source


def run_agent(settings: Settings) -> int:
    """One agent per workdir: waits for one that is ending, then kills what it may have left behind."""
    lock = os.open(settings.workdir / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _locked(lock, seconds=10.0):
        print(f"worker: another worker uses {settings.workdir}; stop it first", file=sys.stderr)
        return EXIT_SUPERSEDED
    if left := kill_marked(str(settings.workdir)):
        print(f"worker: killed {left} process(es) that an earlier worker left behind", file=sys.stderr)
    return Agent(settings).run()


def _locked(descriptor: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
