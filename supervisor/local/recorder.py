"""The recorder: the thread that writes history and the status digest. Nothing ever waits for it."""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from supervisor.api.records import to_json
from supervisor.core.decision import Note
from supervisor.core.incident import Incident
from supervisor.core.observation import Alarm, Checkpoint, FailedSave
from supervisor.driver import Decided
from supervisor.local.clock import LocalClock
from supervisor.local.history import History
from supervisor.local.rundir import RunDirectory
from supervisor.observe.decision_log import DecisionLog
from supervisor.observe.journal import Entry, Journal
from supervisor.observe.progress import Progress
from supervisor.wire.hub import SyncHub
from supervisor.wire.messages import EventRecord
from supervisor.wire.text import printable

PERIOD = 0.2  # seconds between looks, should nobody ring
FLUSH_EVERY = 5  # looks between making the journal safe and telling the workers so
COMPLAIN_EVERY_MS = 60_000
MAX_LOGGED = 1000  # characters of a note or an incident in supervisor.log
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the core is told of the trainer's own words."""

    commits: tuple[Checkpoint, ...]
    alarms: tuple[Alarm, ...]
    failed_saves: tuple[FailedSave, ...]
    total_steps: int | None
    greeted: int


class LocalRecorder:
    """Fed by the hub's server threads and by the driver; writes on a thread of its own."""

    def __init__(
        self, directory: RunDirectory, clock: LocalClock, history: History, digest: Callable[[Decided], None]
    ) -> None:
        self._clock = clock
        self._progress = history.progress
        self._incidents = history.incidents
        self._exits = history.exits
        self._journal = Journal(directory.journal)
        self._decisions = DecisionLog(directory.decisions)
        self._digest = digest
        self._hub: SyncHub | None = None
        self._cursor = 0
        self._pending: deque[Decided] = deque()
        self._notes: deque[Entry] = deque()
        self._latest: Decided | None = None
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._untold = ""
        self._complained_ms: int | None = None
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def start(self, hub: SyncHub) -> None:
        self._hub = hub
        self._thread.start()

    def stop(self) -> None:
        """Write what is left, and end."""
        self._stopping = True
        self._wake.set()
        self._thread.join(timeout=10)
        self._journal.close()
        self._decisions.close()

    # ---- what others call

    def listen(self, node: str, record: EventRecord) -> None:
        """An event has arrived; the core may know of it before it is recorded."""
        with self._lock:
            self._progress.feed(self._clock.now_ms(), record.attempt, record.rank, record.event)

    def decided(self, decided: Decided) -> None:
        with self._lock:
            self._pending.append(decided)
            self._latest = decided
            for incident in decided.decision.incidents:
                self._incidents[incident.number] = incident
        if decided.decision.notes or decided.decision.incidents:
            self._wake.set()
        for note in decided.decision.notes:
            log.info("%s: %s", note.reason.value, printable(note.message, MAX_LOGGED))
        for incident in decided.decision.incidents:
            said = incident.verdict.because if incident.verdict else "its cause is looked for"
            done = f" -> {incident.action}" if incident.action else ""
            log.info("%s", printable(f"{incident.name} is {incident.outcome.value}: {said}{done}", MAX_LOGGED))

    def note(self, note: Note) -> None:
        """Something worth telling that no decision said."""
        entry: Entry = {"kind": "note", "t": self._clock.now_ms(), "reason": note.reason.value, "message": note.message}
        with self._lock:
            self._notes.append(entry)

    @property
    def step(self) -> int:
        return self._progress.step

    def snapshot(self) -> Snapshot:
        with self._lock:
            p = self._progress
            return Snapshot(tuple(p.commits), tuple(p.alarms), tuple(p.failed_saves), p.total_steps, p.greeted)

    def progress(self) -> Progress:
        """A copy that stands still."""
        with self._lock:
            return deepcopy(self._progress)

    def incidents(self) -> tuple[Incident, ...]:
        with self._lock:
            return tuple(self._incidents[number] for number in sorted(self._incidents))

    # ---- the thread

    def _run(self) -> None:
        looks = 0
        while True:
            self._wake.wait(PERIOD)
            self._wake.clear()
            stopping = self._stopping
            looks += 1
            try:
                self._write(flush=stopping or looks % FLUSH_EVERY == 0)
            except OSError as error:  # a full disk: training goes on, workers keep what is not recorded
                self._complain(error)
            if stopping:
                return

    def _complain(self, error: OSError) -> None:
        now = self._clock.now_ms()
        if self._complained_ms is None or now - self._complained_ms >= COMPLAIN_EVERY_MS:
            self._complained_ms = now
            log.error("history cannot be written: %s", error)

    def _write(self, flush: bool) -> None:
        with self._lock:
            latest, self._latest = self._latest, None
        while self._notes:
            self._journal.append(self._notes[0])
            self._notes.popleft()
        while self._pending:  # taken out once it is written
            self._journal.append(*_decision_entries(self._pending[0]))
            self._decisions.append(self._pending.popleft())
        self._write_exits()
        self._write_events()
        if flush:
            self._journal.flush()
            if self._hub is not None:
                self._hub.mark_recorded(self._cursor)
        if latest is not None:
            self._write_status(latest)

    def _write_status(self, latest: Decided) -> None:
        try:
            self._digest(latest)
        except ValueError as error:  # what no status can hold; history, which holds it, goes on
            if str(error) != self._untold:
                log.error("status.json cannot be written: %s", error)
            self._untold = str(error)

    def _write_events(self) -> None:
        if self._hub is None:
            return
        while events := self._hub.take_events(after=self._cursor):
            now = self._clock.now_ms()
            entries = [_event_entry(now, e.record) for e in events if _worth_keeping(e.record)]
            self._journal.append(*entries)
            self._cursor = events[-1].cursor

    def _write_exits(self) -> None:
        if self._hub is None:
            return
        for node in self._hub.nodes():
            report = self._hub.report(node)
            for gang in report.gangs if report else ():
                for rank in gang.ranks:
                    if rank.exit is None or (gang.number, rank.rank) in self._exits:
                        continue
                    entry: Entry = {"kind": "exit", "t": self._clock.now_ms() - rank.exit.ago_ms}
                    entry |= {"attempt": gang.number, "rank": rank.rank, "node": node, "code": rank.exit.code}
                    entry |= {"signal": rank.exit.signal, "byUs": rank.exit.by_us, "tail": rank.exit.tail}
                    self._journal.append(entry)
                    self._exits.add((gang.number, rank.rank))


def _decision_entries(decided: Decided) -> list[Entry]:
    now, decision = decided.now_ms, decided.decision
    entries: list[Entry] = [
        {"kind": "note", "t": now, "reason": note.reason.value, "message": note.message} for note in decision.notes
    ]
    entries += [
        {"kind": "incident", "t": now, "incident": json.loads(to_json(incident))} for incident in decision.incidents
    ]
    before, after = decided.memory.attempt, decision.memory.attempt
    if after is not None and (before is None or before.number != after.number):
        resume = f"{after.parent.attempt}:{after.parent.step}" if after.parent else None
        layout = after.placement.layout
        attempt: dict[str, Any] = {"number": after.number, "nodes": list(after.placement.nodes), "resume": resume}
        attempt["layout"] = [layout.racks, layout.nodes_per_rack, layout.ranks_per_node]
        entries.append({"kind": "attempt", "t": now, "attempt": attempt})
    return entries


def _worth_keeping(record: EventRecord) -> bool:
    """Rank 0 speaks for the gang; of the others only what it cannot say."""
    event = record.event.get("event")
    if event == "step":
        return record.rank == 0 and record.event.get("state") == "completed"
    return record.rank == 0 or event in ("alarm", "checkpoint")


def _event_entry(now: int, record: EventRecord) -> Entry:
    return {
        "kind": "event",
        "t": now,
        "attempt": record.attempt,
        "rank": record.rank,
        "sequence": record.sequence,
        "event": record.event,
    }
