"""Events on this node's disk until the supervisor has recorded them, so that neither side's restart loses one.

One append-only file per (attempt, rank), a JSON object a line: sequence and event. Bounded: beyond the bound the
oldest progress goes first, then the oldest of anything, counted. It survives the end of the worker, not of the machine.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from supervisor.wire.json_file import parse_json
from supervisor.wire.messages import Acknowledgement, EventRecord

MAX_EVENTS = 50_000
MAX_BYTES = 32 << 20
BATCH_EVENTS = 500
BATCH_BYTES = 1 << 20
COMPACT_BYTES = 1 << 20
PROGRESS = "step"  # also told by the rank's own report, so it goes first

_NAME = re.compile(r"a(\d{1,18})-r(\d{1,9})\.jsonl")
Key = tuple[int, int]


class EventSpool:
    def __init__(self, directory: Path, max_events: int = MAX_EVENTS, max_bytes: int = MAX_BYTES) -> None:
        self.dropped = 0
        self._directory = directory
        self._max_events, self._max_bytes = max_events, max_bytes
        self._streams: dict[Key, _Stream] = {}
        self.supervisor = ""  # whose word the cursors follow
        directory.mkdir(parents=True, exist_ok=True)
        for path in sorted(directory.iterdir()):
            if match := _NAME.fullmatch(path.name):
                key = (int(match.group(1)), int(match.group(2)))
                self._streams[key] = _Stream(key, path)

    def append(self, attempt: int, rank: int, event: dict[str, Any]) -> None:
        key = (attempt, rank)
        if key not in self._streams:
            self._streams[key] = _Stream(key, self._directory / f"a{attempt}-r{rank}.jsonl")
        self._streams[key].append(event)
        if self._over(1.0):
            self._make_room()

    def flush(self) -> None:
        """Hand what was appended to the operating system."""
        for stream in self._streams.values():
            stream.flush()

    def batch(self) -> tuple[EventRecord, ...]:
        """The next events to send: each rank's in order, ranks sharing the batch fairly."""
        # the shortest first: what it leaves of its share goes to the longer ones
        streams = sorted((s for s in self._streams.values() if s.unsent()), key=lambda s: (s.unsent(), s.key))
        chosen: list[EventRecord] = []
        size = 0
        for number, stream in enumerate(streams):
            quota = max(1, (BATCH_EVENTS - len(chosen)) // (len(streams) - number))
            allowed = (BATCH_BYTES - size) // (len(streams) - number)
            records, used = stream.next(quota, allowed)
            chosen.extend(records)
            size += used
        return tuple(chosen)

    def acknowledge(self, answer: Acknowledgement) -> None:
        """Take the supervisor's word on what it has seen and recorded, also when it is less than before."""
        if answer.supervisor != self.supervisor:
            self.supervisor = answer.supervisor
            self.resend()
        for attempt, rank, sequence in answer.seen:
            if stream := self._streams.get((attempt, rank)):
                stream.sent = sequence
        for attempt, rank, sequence in answer.recorded:
            if stream := self._streams.get((attempt, rank)):
                stream.forget(sequence)
        self._close_finished()

    def resend(self) -> None:
        """Nothing is known about what the supervisor holds: send all that is not recorded."""
        for stream in self._streams.values():
            stream.sent = 0

    def waiting(self) -> int:
        """Events that were not sent yet."""
        return sum(stream.unsent() for stream in self._streams.values())

    def _close_finished(self) -> None:
        newest = max((attempt for attempt, _ in self._streams), default=0)
        for key, stream in list(self._streams.items()):
            if key[0] < newest and not stream.entries:
                stream.remove()
                del self._streams[key]

    def _over(self, share: float) -> bool:
        events = sum(len(s.entries) for s in self._streams.values())
        size = sum(s.size for s in self._streams.values())
        return events > share * self._max_events or size > share * self._max_bytes

    def _make_room(self) -> None:
        """Down to 90 % of the bound, so that it is not done at every event."""
        for progress_alone in (True, False):
            for _, stream in sorted(self._streams.items()):
                while self._over(0.9) and (dropped := stream.drop(progress_alone)):
                    self.dropped += dropped


class _Stream:
    """The events of one rank of one attempt. `sent`: the highest sequence that the supervisor says it has seen."""

    def __init__(self, key: Key, path: Path) -> None:
        self.key = key
        self.sent = 0
        self.size = 0
        self.entries: deque[tuple[int, dict[str, Any], int]] = deque()
        self._path = path
        self._last = 0
        self._stale_bytes = 0
        self._file: int | None = None
        self._pending: list[bytes] = []
        if path.exists():
            self._load()

    def append(self, event: dict[str, Any]) -> None:
        self._last += 1
        line = json.dumps({"s": self._last, "e": event}, separators=(",", ":")).encode() + b"\n"
        self.entries.append((self._last, event, len(line)))
        self.size += len(line)
        self._pending.append(line)

    def flush(self) -> None:
        if not self._pending:
            return
        data, self._pending = b"".join(self._pending), []
        try:
            if self._file is None:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            os.write(self._file, data)
        except OSError as error:  # a full disk stops no training: the events are still in memory
            print(f"worker: {self._path}: {len(data)} bytes of events are in memory alone: {error}", file=sys.stderr)

    def unsent(self) -> int:
        return sum(1 for _ in self._after_sent()) if self.entries and self.entries[-1][0] > self.sent else 0

    def next(self, events: int, size: int) -> tuple[list[EventRecord], int]:
        """At least one record, then as many as fit."""
        chosen: list[EventRecord] = []
        used = 0
        for sequence, event, length in self._after_sent():
            if chosen and (len(chosen) >= events or used + length > size):
                break
            chosen.append(EventRecord(*self.key, sequence, event))
            used += length
        return chosen, used

    def forget(self, recorded: int) -> None:
        while self.entries and self.entries[0][0] <= recorded:
            self._drop_at(0)
        if self._stale_bytes > COMPACT_BYTES and self._stale_bytes > self.size:
            self._compact()

    def drop(self, progress_alone: bool) -> int:
        """Drop the oldest events: a run of progress, or one of anything. Returns how many, 0 if there is none."""
        for index, (_, event, _) in enumerate(self.entries):
            if not progress_alone or event.get("event") == PROGRESS:
                self._drop_at(index)
                return 1
        return 0

    def remove(self) -> None:
        self._close()
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:  # a disk that became read-only, say: what is recorded already harms nobody
            print(f"worker: {self._path}: cannot be removed: {error}", file=sys.stderr)

    def _after_sent(self) -> Iterable[tuple[int, dict[str, Any], int]]:
        return (entry for entry in self.entries if entry[0] > self.sent)

    def _drop_at(self, index: int) -> None:
        length = self.entries[index][2]
        del self.entries[index]
        self.size -= length
        self._stale_bytes += length

    def _compact(self) -> None:
        self.flush()
        self._close()
        temporary = self._path.with_name(self._path.name + ".new")
        lines = (json.dumps({"s": s, "e": e}, separators=(",", ":")) + "\n" for s, e, _ in self.entries)
        try:
            temporary.write_text("".join(lines), encoding="utf-8")
            os.replace(temporary, self._path)
        except OSError as error:  # a full disk: tried again when as much has become stale once more
            print(f"worker: {self._path}: cannot be made smaller: {error}", file=sys.stderr)
        self._stale_bytes = 0

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _load(self) -> None:
        for line in self._path.read_bytes().splitlines():
            try:
                entry = parse_json(line)
                sequence, event = int(entry["s"]), dict(entry["e"])
            except (ValueError, KeyError, TypeError):
                print(f"worker: {self._path}: a broken line was skipped", file=sys.stderr)
                continue
            if sequence > self._last:
                self._last = sequence
                self.entries.append((sequence, event, len(line) + 1))
                self.size += len(line) + 1
