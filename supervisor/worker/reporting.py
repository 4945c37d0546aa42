"""When to report and what: at once what is urgent, other progress at most twice a second, else a sign of life."""

from __future__ import annotations

import os
import sys

from supervisor.wire.client import Backoff, Refused, SyncClient, SyncUnavailable
from supervisor.wire.messages import Acknowledgement, Order, Report
from supervisor.worker.gangs import Gangs
from supervisor.worker.link import SUPERSEDED, ReportThread
from supervisor.worker.spool import EventSpool
from supervisor.worker.tasks import Tasks

PROGRESS_SECONDS = 0.5
IDLE_SECONDS = 2.0
URGENT_BURST, URGENT_PER_SECOND = 10.0, 20.0  # so that a flood of urgent events is no flood of reports
LAST_WORDS_SECONDS = 2.0  # how long leaving waits for the last report to be heard


class Reporting:
    def __init__(self, client: SyncClient, thread: ReportThread, gangs: Gangs, tasks: Tasks, spool: EventSpool) -> None:
        self.superseded = False
        self._client = client
        self._thread = thread
        self._gangs, self._tasks, self._spool = gangs, tasks, spool
        self._backoff = Backoff()
        self._order_revision, self._order_key = 0, ""
        self._serial = 0
        self._sent: Report | None = None
        self._changed = self._urgent = True
        self._last_sent = 0.0
        self._credit = URGENT_BURST
        self._not_before = float("-inf")
        self._said = ""
        self._leaving = False
        self._leave_by: float | None = None

    def news(self, urgent: bool) -> None:
        self._changed = True
        self._urgent |= urgent

    def order_taken(self, order: Order) -> None:
        self._order_revision, self._order_key = order.revision, order.key
        self.news(True)

    def leaving(self) -> None:
        self._leaving = True
        self.news(True)

    def told(self, now: float) -> bool:
        """Asked once every rank has ended: whether the supervisor has heard all, or does not listen."""
        if not self._changed and not self._thread.busy and not self._spool.waiting():
            return True
        if self._leave_by is None:
            self._leave_by = now + LAST_WORDS_SECONDS
        return self.superseded or now > self._leave_by

    def advance(self, now: float) -> float | None:
        """Take an outcome and send what is due. Returns when to look again (monotonic seconds)."""
        self._take_outcome(now)
        if self._thread.busy:
            return self._leave_by
        due = max(self._due(), self._not_before)
        if now < due:
            return due if self._leave_by is None else min(due, self._leave_by)
        self._serial += 1
        self._sent = self._compose(now)
        self._changed = self._urgent = False
        self._credit = min(URGENT_BURST, self._credit + URGENT_PER_SECOND * (now - self._last_sent)) - 1
        self._last_sent = now
        self._thread.submit(self._sent)
        return self._leave_by

    def _due(self) -> float:
        if self._urgent or self._leave_by is not None:
            return self._last_sent + max(0.0, 1 - self._credit) / URGENT_PER_SECOND
        return self._last_sent + (PROGRESS_SECONDS if self._changed else IDLE_SECONDS)

    def _compose(self, now: float) -> Report:
        host = self._client.local_address()
        return Report(
            node=self._client.node,
            session=self._client.session,
            serial=self._serial,
            pid=os.getppid(),  # the guard's: the process that the host started
            order_revision=self._order_revision,
            order_key=self._order_key,
            newest_attempt=self._gangs.newest,
            offer=self._gangs.offer.address(host) if host else "",
            gangs=self._gangs.reports(now),
            events=self._spool.batch(),
            results=self._tasks.results(),
            dropped_events=self._spool.dropped,
            supervisor=self._spool.supervisor,
        )

    def _take_outcome(self, now: float) -> None:
        outcome = self._thread.outcome()
        if outcome is None or self._sent is None:
            return
        if isinstance(outcome, Acknowledgement):
            self._heard(self._sent, outcome)
            return
        self.news(True)  # what the report held is still to be said
        self._spool.resend()
        self._not_before = now + self._backoff.delay()
        if isinstance(outcome, Refused):
            self.superseded |= outcome.status == SUPERSEDED
        if str(outcome) != self._said and isinstance(outcome, Refused | SyncUnavailable):
            self._said = str(outcome)
            print(f"worker: {outcome}; trying again, ranks go on", file=sys.stderr, flush=True)

    def _heard(self, sent: Report, answer: Acknowledgement) -> None:
        self._backoff.reset()
        self._not_before = float("-inf")
        self._said = ""
        self._spool.acknowledge(answer)
        forgotten = not self._leaving and self._gangs.reported(sent.gangs)  # last words hold all to the end
        if forgotten or sent.offer == "" or self._spool.waiting():
            self.news(True)
