"""The supervisor's side of sync: HTTP/1.1 with a bearer token, two kept-alive connections per worker.

It translates between sockets and `SyncHub` and decides nothing. The wait of a long poll also watches its socket, so
that a killed worker is noticed at once and not when its poll would have ended.
"""

from __future__ import annotations

import hmac
import itertools
import json
import logging
import math
import os
import select
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from supervisor.wire.codec import Malformed, decode, encode
from supervisor.wire.hub import ProtocolMismatch, StaleSession, SyncHub
from supervisor.wire.messages import Order, Report

MAX_BODY = 8 << 20
MAX_WAIT = 60.0  # seconds
MAX_NAME = 253  # a DNS name's limit, which node names keep
IDLE_TIMEOUT = 90.0  # seconds without a request: a worker reports every 2 s, so the other side is gone

log = logging.getLogger(__name__)


class SyncServer:
    """Serves `hub` on a thread of its own. Port 0: any; `address` says which. Give `unavailable` a reason to answer
    503 to all (workers keep training)."""

    def __init__(self, hub: SyncHub, token: str, host: str = "127.0.0.1", port: int = 0) -> None:
        if len(token) < 16:
            raise ValueError("the sync token needs at least 16 characters")
        self.unavailable: str | None = None
        self._http = _HTTPServer((host, port), _Handler)
        self._http.hub = hub
        self._http.token = token.encode()
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.1,), name="sync-server", daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._http.server_address[:2]
        return str(host), int(port)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Close the port and every connection; workers notice at once and try again."""
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join()
        self._http.server_close()
        self._http.hang_up()


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512  # a whole fleet may connect at once after a restart
    hub: SyncHub
    token: bytes
    owner: SyncServer

    def __init__(self, *arguments: Any) -> None:
        self._open: set[socket.socket] = set()
        self._open_lock = threading.Lock()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._open_lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._open_lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        with self._open_lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError as error:
                    log.debug("a sync connection was closed already: %s", error)

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("a sync connection from %s ended", client_address, exc_info=True)


class _Answer(Exception):
    """An answer that is not 200; `close` when the request's body was left unread."""

    def __init__(self, status: int, text: str, close: bool = False) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.close = close


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "marin-sup"
    sys_version = ""
    disable_nagle_algorithm = True
    timeout = IDLE_TIMEOUT
    wbufsize = 64 * 1024  # headers and body in one write; flushed after each request
    server: _HTTPServer
    _numbers = itertools.count(1)

    def setup(self) -> None:
        super().setup()
        self._number = next(self._numbers)
        self._node: str | None = None

    def finish(self) -> None:
        if self._node is not None:
            self.server.hub.connection_closed(self._node, self._number)
        super().finish()

    def log_message(self, format: str, *arguments: Any) -> None:
        log.debug(format, *arguments)

    def do_POST(self) -> None:
        self._answer("/v1/report", self._report)

    def do_GET(self) -> None:
        self._answer("/v1/orders", self._orders)

    def _answer(self, path: str, action: Any) -> None:
        try:
            self._authorize()
            if urlsplit(self.path).path != path:
                raise _Answer(404, f"{self.command} {path} is all there is", close=True)
            answer = action()
        except _Answer as error:
            self._send(error.status, error.text.encode(), "text/plain; charset=utf-8", error.close)
        except StaleSession as error:
            self._send(409, str(error).encode(), "text/plain; charset=utf-8")
        except ProtocolMismatch as error:
            self._send(426, str(error).encode(), "text/plain; charset=utf-8")
        else:
            if answer is None:
                self._send(204, b"", None)
            else:
                body = json.dumps(encode(answer), separators=(",", ":")).encode()
                self._send(200, body, "application/json")

    def _authorize(self) -> None:
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        given = token.strip().encode("latin-1", "replace")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given, self.server.token):
            raise _Answer(401, "wrong or missing token", close=True)
        if self.server.owner.unavailable is not None:
            raise _Answer(503, self.server.owner.unavailable, close=True)

    def _report(self) -> Any:
        try:
            report = decode(Report, json.loads(self._body(), parse_constant=_no_constant))
        except Malformed as error:
            raise _Answer(400, str(error)) from error
        except (ValueError, RecursionError) as error:
            raise _Answer(400, f"message: not JSON: {error}"[:500]) from error
        self._named(report.node, report.session)
        self._used(report.node, report.session)
        return self.server.hub.accept_report(report)

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            raise _Answer(411, "a Content-Length is needed", close=True)
        if len(length) > 12 or int(length) > MAX_BODY:
            raise _Answer(413, f"at most {MAX_BODY} bytes are allowed", close=True)
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise ConnectionResetError("the worker went away within a report")
        return body

    def _orders(self) -> Order | None:
        query = parse_qs(urlsplit(self.path).query)
        node, session = query.get("node", [""])[0], query.get("session", [""])[0]
        self._named(node, session)
        try:
            after, wait = int(query.get("after", ["0"])[0][:20]), float(query.get("wait", ["0"])[0])
        except ValueError as error:
            raise _Answer(400, f"orders: {error}"[:500]) from error
        if not math.isfinite(wait) or after < 0:
            raise _Answer(400, "orders: after is a revision, wait a number of seconds")
        self._used(node, session)
        return self._wait_for_order(node, session, after, max(0.0, min(wait, MAX_WAIT)))

    def _wait_for_order(self, node: str, session: str, after: int, wait: float) -> Order | None:
        hub, deadline = self.server.hub, time.monotonic() + wait
        wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        hub.watch(node, wake)
        try:
            poll = select.poll()
            poll.register(wake, select.POLLIN)
            poll.register(self.connection, select.POLLIN | select.POLLRDHUP)
            while True:
                if (order := hub.newer_order(node, session, after)) is not None:
                    return order
                if (left := deadline - time.monotonic()) <= 0:
                    return None
                ready = dict(poll.poll(left * 1000))
                if self.connection.fileno() in ready:
                    raise ConnectionResetError("the worker went away while it waited for an order")
                if wake in ready:
                    os.eventfd_read(wake)
        finally:
            hub.unwatch(node, wake)
            os.close(wake)

    def _named(self, node: str, session: str) -> None:
        for name in (node, session):
            if not 0 < len(name) <= MAX_NAME or not name.isascii() or not name.isprintable():
                raise _Answer(400, f"node and session: 1 to {MAX_NAME} printable ASCII characters are allowed")

    def _used(self, node: str, session: str) -> None:
        if self._node not in (None, node):
            raise _Answer(400, "one connection speaks for one node", close=True)
        self._node = node
        self.server.hub.connection_used(node, session, self._number)

    def _send(self, status: int, body: bytes, kind: str | None, close: bool = False) -> None:
        self.send_response(status)
        if kind is not None:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
        if close:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        self.wfile.write(body)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
