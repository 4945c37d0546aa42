"""What the supervisor knows from sync: per node the newest report and connections, the order it is to have, and events.

In memory alone. Truth for decisions is the supervisor's memory, truth for history the journal; after a restart the
workers send again what was not recorded. All methods may be called from any thread; callbacks run without the lock.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from supervisor.wire.messages import PROTOCOL, Acknowledgement, EventRecord, Order, Report
from supervisor.wire.news import news

MAX_QUEUED = 200_000  # events not yet recorded; beyond it they stay in the workers' spools
MAX_RETIRED = 64
Key = tuple[int, int]  # (attempt, rank)


class StaleSession(Exception):
    """A newer worker process has registered for this node."""


class ProtocolMismatch(Exception):
    """The worker speaks a protocol more than one version away from ours."""


@dataclass(frozen=True, slots=True)
class Ring:
    """A ring of the doorbell. `urgent`: decide now; otherwise progress, which can wait for the next pass."""

    node: str
    urgent: bool
    reason: str


@dataclass(frozen=True, slots=True)
class QueuedEvent:
    """An event on its way to the journal. `cursor` grows over all nodes, within this process."""

    cursor: int
    node: str
    record: EventRecord


@dataclass(slots=True)
class _Node:
    session: str = ""
    retired: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_RETIRED))
    report: Report | None = None
    heard: float | None = None
    connections: dict[int, str] = field(default_factory=dict)  # id of the connection -> session
    order: Order | None = None
    revision: int = 0  # never below what a worker already acts on
    watchers: set[int] = field(default_factory=set)  # eventfds of waiting polls
    keys: set[Key] = field(default_factory=set)  # owed an acknowledgement


class SyncHub:
    """`doorbell` is rung on every change; `listener` is given each event once, in order, before it is recorded."""

    def __init__(
        self,
        doorbell: Callable[[Ring], None] | None = None,
        listener: Callable[[str, EventRecord], None] | None = None,
        max_queued: int = MAX_QUEUED,
    ) -> None:
        self.instance = secrets.token_hex(8)
        self._doorbell = doorbell or (lambda ring: None)
        self._listener = listener or (lambda node, record: None)
        self._max_queued = max_queued
        self._lock = threading.Lock()
        self._delivery = threading.Lock()  # keeps the listener's order that of the sequences
        self._nodes: dict[str, _Node] = {}
        # a restarted supervisor's orders are newer than those of the one before it: revisions begin at the clock
        self._first_revision = int(time.time() * 1000)
        self._seen: dict[Key, int] = {}
        self._recorded: dict[Key, int] = {}
        self._queue: deque[QueuedEvent] = deque()
        self._cursor = 0

    # ---- for the supervisor

    def resume(self, recorded: Mapping[Key, int]) -> None:
        """After a restart: the highest sequence per (attempt, rank) in the journal. Nothing up to it comes again."""
        with self._lock:
            for key, sequence in recorded.items():
                self._recorded[key] = max(sequence, self._recorded.get(key, 0))
                self._seen[key] = max(sequence, self._seen.get(key, 0))

    def set_order(self, node: str, order: Order) -> int:
        """Make `order` (its revision is ignored) the newest of `node`. Returns its revision, a new one only if the
        content is new."""
        with self._lock:
            state = self._node(node)
            if state.order is not None and replace(order, revision=state.order.revision) == state.order:
                return state.order.revision
            state.revision += 1
            state.order = replace(order, revision=state.revision)
            _wake(state)
            return state.revision

    def nodes(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._nodes)

    def report(self, node: str) -> Report | None:
        """The newest report of the newest session; None before the first."""
        with self._lock:
            return self._node(node).report

    def session(self, node: str) -> str:
        with self._lock:
            return self._node(node).session

    def order(self, node: str) -> Order | None:
        with self._lock:
            return self._node(node).order

    def connected(self, node: str) -> bool:
        """Whether the newest session holds at least one open connection."""
        with self._lock:
            return _connected(self._node(node))

    def silent_ms(self, node: str) -> int | None:
        """Milliseconds since anything was heard from the node; None: never."""
        with self._lock:
            heard = self._node(node).heard
        return None if heard is None else int((time.monotonic() - heard) * 1000)

    def take_events(self, after: int = 0, limit: int = 1000) -> tuple[QueuedEvent, ...]:
        """Events that are not recorded yet, with a cursor above `after`. Reading takes nothing away."""
        with self._lock:
            if not self._queue or self._queue[-1].cursor <= after:
                return ()
            start = max(0, after + 1 - self._queue[0].cursor)  # cursors in the queue are contiguous
            return tuple(self._queue[i] for i in range(start, min(len(self._queue), start + limit)))

    def mark_recorded(self, cursor: int) -> None:
        """All events up to `cursor` are safe in the journal; workers may drop them."""
        with self._lock:
            while self._queue and self._queue[0].cursor <= cursor:
                record = self._queue.popleft().record
                self._recorded[record.attempt, record.rank] = record.sequence

    # ---- for the server

    def accept_report(self, report: Report) -> Acknowledgement:
        """Raises `StaleSession` or `ProtocolMismatch`; a delayed report changes nothing but may bring events."""
        if abs(report.protocol - PROTOCOL) > 1:
            raise ProtocolMismatch(
                f"the worker on {report.node} speaks protocol {report.protocol}, this supervisor {PROTOCOL}: "
                "they may differ by 1; update the older of the two"
            )
        with self._delivery:
            with self._lock:
                state = self._node(report.node)
                rings = self._adopt(report.node, state, report.session)
                before = state.report
                if before is None or report.serial >= before.serial:
                    state.report = replace(report, events=())
                    state.revision = max(state.revision, report.order_revision)
                fresh = self._queue_events(state, report)
                acknowledgement = self._acknowledge(state)
            for record in fresh:
                self._listener(report.node, record)
        urgent, reason = news(before, report, fresh)
        for ring in (*rings, Ring(report.node, urgent, reason)):
            self._doorbell(ring)
        return acknowledgement

    def newer_order(self, node: str, session: str, after: int) -> Order | None:
        """The node's order if the worker has not got it yet. Raises `StaleSession`.

        A worker that acts on a revision we never gave was ordered by an earlier supervisor: ours is newer.
        """
        with self._lock:
            state = self._node(node)
            rings = self._adopt(node, state, session)
            if after > state.revision or (state.order is not None and state.order.revision < after):
                state.revision = max(after, state.revision) + 1
                state.order = replace(state.order, revision=state.revision) if state.order else None
            order = state.order
        for ring in rings:
            self._doorbell(ring)
        return order if order is not None and order.revision > after else None

    def watch(self, node: str, descriptor: int) -> None:
        """Write to the eventfd `descriptor` whenever the node's order or session changes."""
        with self._lock:
            self._node(node).watchers.add(descriptor)

    def unwatch(self, node: str, descriptor: int) -> None:
        """After this the descriptor may be closed."""
        with self._lock:
            self._node(node).watchers.discard(descriptor)

    def connection_used(self, node: str, session: str, connection: int) -> None:
        with self._lock:
            self._node(node).connections[connection] = session

    def connection_closed(self, node: str, connection: int) -> None:
        with self._lock:
            state = self._node(node)
            known = state.connections.pop(connection, None) is not None
            lost = known and not _connected(state)
        if lost:
            self._doorbell(Ring(node, True, "connection lost"))

    # ---- inside, with the lock held

    def _node(self, name: str) -> _Node:
        if name not in self._nodes:
            self._nodes[name] = _Node(revision=self._first_revision)
        return self._nodes[name]

    def _adopt(self, node: str, state: _Node, session: str) -> tuple[Ring, ...]:
        if session in state.retired:
            raise StaleSession(f"another worker process has registered for {node}; this one is no longer heard")
        state.heard = time.monotonic()
        if session == state.session:
            return ()
        if state.session:
            state.retired.append(state.session)
        state.session = session
        state.report = None
        _wake(state)
        return (Ring(node, True, "new session"),)

    def _queue_events(self, state: _Node, report: Report) -> tuple[EventRecord, ...]:
        state.keys.update((r.attempt, r.rank) for r in report.events)
        state.keys.update((gang.number, rank.rank) for gang in report.gangs for rank in gang.ranks)
        fresh: list[EventRecord] = []
        if report.supervisor not in ("", self.instance):
            return ()  # chosen for the supervisor before us; our answer makes the worker choose anew
        for record in report.events:
            key = (record.attempt, record.rank)
            if record.sequence <= self._seen.get(key, 0):
                continue
            if len(self._queue) >= self._max_queued:
                break  # not seen: the worker keeps it and sends it again
            self._seen[key] = record.sequence
            self._cursor += 1
            self._queue.append(QueuedEvent(self._cursor, report.node, record))
            fresh.append(record)
        return tuple(fresh)

    def _acknowledge(self, state: _Node) -> Acknowledgement:
        keys = sorted(state.keys)
        seen = tuple((*key, self._seen.get(key, 0)) for key in keys)
        recorded = tuple((*key, self._recorded.get(key, 0)) for key in keys)
        # what is wholly recorded is owed no more; should this answer be lost, the events come again, and so the key
        state.keys = {key for key in keys if self._recorded.get(key, 0) < self._seen.get(key, 0)}
        return Acknowledgement(seen, recorded, self.instance)


def _connected(state: _Node) -> bool:
    return any(session == state.session for session in state.connections.values())


def _wake(state: _Node) -> None:
    for descriptor in state.watchers:
        os.eventfd_write(descriptor, 1)
