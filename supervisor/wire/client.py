"""The worker's side of sync: two kept-alive connections, one to report, one to wait for orders.

Each connection belongs to one thread. A call either succeeds or raises `SyncUnavailable` (try again later, the
ranks go on training) or `Refused` (the supervisor answered, and said no).
"""

from __future__ import annotations

import http.client
import json
import random
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urlencode

from supervisor.wire.codec import Malformed, decode, encode
from supervisor.wire.messages import Acknowledgement, Order, Report

T = TypeVar("T")
AddressSource = Callable[[], tuple[str, int, str]]
MAX_ANSWER_BYTES = 8 << 20
REPORT_TIMEOUT = 10.0  # seconds; on loopback or in a rack an answer takes milliseconds
POLL_WAIT = 25.0  # seconds; below the idle limits of common proxies and load balancers (30 to 60 s)
FIRST_DELAY, LONGEST_DELAY = 0.05, 2.0


class SyncUnavailable(Exception):
    """The supervisor is away, restarting or answered 5xx. Nothing is concluded from it."""


class Refused(Exception):
    """The supervisor answered 4xx: 401 wrong token, 409 an older session, 426 another protocol."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"the supervisor refused ({status}): {reason}")
        self.status = status
        self.reason = reason


class Backoff:
    """Delays of 0.05 to 2 s, doubling, each shortened at random by up to a half so that workers spread out."""

    def __init__(self) -> None:
        self._next = FIRST_DELAY

    def delay(self) -> float:
        """Seconds to wait before the next try."""
        delay = self._next * random.uniform(0.5, 1.0)
        self._next = min(LONGEST_DELAY, self._next * 2)
        return delay

    def reset(self) -> None:
        self._next = FIRST_DELAY


class SyncClient:
    """`address_source` returns (host, port, token), read anew for every connection: a restarted supervisor may
    listen elsewhere. It raises `SyncUnavailable` where no address is known."""

    def __init__(self, address_source: AddressSource, node: str, session: str) -> None:
        self.node = node
        self.session = session
        self._reports = _Connection(address_source, REPORT_TIMEOUT)
        self._orders = _Connection(address_source, POLL_WAIT + REPORT_TIMEOUT)

    def post_report(self, report: Report) -> Acknowledgement:
        """Send one report. Safe to repeat: the supervisor knows serials and sequences."""
        body = json.dumps(encode(report), separators=(",", ":"), allow_nan=False).encode()
        _, answer = self._reports.request("POST", "/v1/report", body)
        return _decoded(Acknowledgement, answer)

    def poll_order(self, after: int, wait: float = POLL_WAIT) -> Order | None:
        """The newest order with a revision above `after`; None when none came within `wait` seconds."""
        query = urlencode({"after": after, "node": self.node, "session": self.session, "wait": f"{wait:.1f}"})
        status, answer = self._orders.request("GET", f"/v1/orders?{query}", None)
        return None if status == 204 else _decoded(Order, answer)

    def local_address(self) -> str | None:
        """Our own address on the way to the supervisor, once connected; what peers can reach us by."""
        return self._reports.local_address

    def close(self) -> None:
        self._reports.close()
        self._orders.close()


class _Connection:
    def __init__(self, address_source: AddressSource, timeout: float) -> None:
        self._source = address_source
        self._timeout = timeout
        self._connection: http.client.HTTPConnection | None = None
        self._token = ""
        self.local_address: str | None = None

    def request(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        """(status, body). A kept-alive connection that turns out dead is replaced once, without a delay."""
        reused = self._connection is not None
        try:
            return self._exchange(method, path, body)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if not reused or isinstance(error, TimeoutError):
                raise SyncUnavailable(f"no answer from the supervisor: {error!r}") from error
        try:
            return self._exchange(method, path, body)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise SyncUnavailable(f"no answer from the supervisor: {error!r}") from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        connection = self._connected()
        headers = {"Authorization": f"Bearer {self._token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        answer = response.read(MAX_ANSWER_BYTES + 1)
        if len(answer) > MAX_ANSWER_BYTES:
            self.close()
            raise SyncUnavailable(f"the answer is larger than {MAX_ANSWER_BYTES} bytes")
        if response.status in (200, 204):
            return response.status, answer
        self.close()  # the next try reads the address, and so the token, anew
        text = answer[:2000].decode("utf-8", "replace")
        if response.status >= 500:
            raise SyncUnavailable(f"the supervisor answered {response.status}: {text}")
        raise Refused(response.status, text)

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            host, port, self._token = self._source()
            connection = http.client.HTTPConnection(host, port, timeout=self._timeout)
            connection.connect()  # http.client sets TCP_NODELAY itself
            self.local_address = connection.sock.getsockname()[0]
            self._connection = connection
        return self._connection


def _decoded(cls: type[T], answer: bytes) -> T:
    try:
        return decode(cls, json.loads(answer))
    except (ValueError, RecursionError, Malformed) as error:
        raise SyncUnavailable(f"the supervisor's answer does not fit: {error}") from error
