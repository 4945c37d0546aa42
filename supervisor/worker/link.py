"""The two sync threads. They only carry messages: the main thread composes every report and follows every order."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable

from supervisor.wire.client import Backoff, Refused, SyncClient, SyncUnavailable
from supervisor.wire.messages import Acknowledgement, Order, Report

Outcome = Acknowledgement | SyncUnavailable | Refused
SUPERSEDED = 409  # another worker process speaks for this node


class ReportThread:
    """Posts one report at a time; `wake` is called when its outcome can be taken."""

    def __init__(self, client: SyncClient, wake: Callable[[], None]) -> None:
        self.busy = False  # main thread alone
        self._client = client
        self._wake = wake
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="sync-reports", daemon=True).start()

    def submit(self, report: Report) -> None:
        self.busy = True
        self._reports.put(report)

    def outcome(self) -> Outcome | None:
        try:
            outcome = self._outcomes.get_nowait()
        except queue.Empty:
            return None
        self.busy = False
        return outcome

    def _run(self) -> None:
        while True:
            report = self._reports.get()
            try:
                self._outcomes.put(self._client.post_report(report))
            except (SyncUnavailable, Refused) as error:
                self._outcomes.put(error)
            except Exception as error:  # noqa: BLE001 (a thread that died unheard would be worse)
                self._outcomes.put(SyncUnavailable(f"a report cannot be sent: {error!r}"))
            self._wake()


class OrderThread:
    """Waits for orders without end, backing off while the supervisor is away or refuses."""

    def __init__(self, client: SyncClient, wake: Callable[[], None]) -> None:
        self._client = client
        self._wake = wake
        self._orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self._superseded = threading.Event()
        threading.Thread(target=self._run, name="sync-orders", daemon=True).start()

    @property
    def superseded(self) -> bool:
        return self._superseded.is_set()

    def newest(self) -> Order | None:
        """The newest order that came since the last call."""
        newest = None
        while True:
            try:
                newest = self._orders.get_nowait()
            except queue.Empty:
                return newest

    def _run(self) -> None:
        after, backoff, pause = 0, Backoff(), threading.Event()
        said = ""
        while True:
            try:
                order = self._client.poll_order(after)
            except (SyncUnavailable, Refused) as error:
                said = _say_once(said, str(error))
                if isinstance(error, Refused) and error.status == SUPERSEDED:
                    self._superseded.set()
                    self._wake()
                    return
                pause.wait(backoff.delay())
                continue
            except Exception as error:  # noqa: BLE001 (a thread that died unheard would be worse)
                said = _say_once(said, f"orders cannot be read: {error!r}")
                pause.wait(backoff.delay())
                continue
            backoff.reset()
            said = ""
            if order is not None:
                after = order.revision
                self._orders.put(order)
                self._wake()


def _say_once(said: str, sentence: str) -> str:
    if sentence != said:
        print(f"worker: {sentence}", file=sys.stderr, flush=True)
    return sentence
