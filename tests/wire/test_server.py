"""The sync server over real sockets: who is let in, what is refused in which words, how fast an order arrives."""

from __future__ import annotations

import http.client
import json
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from supervisor.wire.client import Refused, SyncClient, SyncUnavailable
from supervisor.wire.codec import encode
from supervisor.wire.hub import Ring, SyncHub
from supervisor.wire.messages import EventRecord, Order, Report
from supervisor.wire.server import MAX_BODY, SyncServer

TOKEN = "a-token-for-tests-0123456789"


@dataclass
class Served:
    hub: SyncHub
    server: SyncServer
    rings: list[Ring]

    def client(self, session: str = "s1", node: str = "n1", token: str = TOKEN) -> SyncClient:
        return SyncClient(lambda: (*self.server.address, token), node, session)

    def request(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(*self.server.address, timeout=5)
        try:
            sent = {"Authorization": f"Bearer {TOKEN}", **{k.replace("_", "-"): v for k, v in headers.items()}}
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()


@pytest.fixture
def served() -> Iterator[Served]:
    rings: list[Ring] = []
    hub = SyncHub(rings.append)
    server = SyncServer(hub, TOKEN)
    server.start()
    yield Served(hub, server, rings)
    server.stop()


def until(condition: Any, what: str) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


def body(**members: object) -> bytes:
    return json.dumps({"node": "n1", "session": "s1", **members}).encode()


@pytest.mark.parametrize(
    ("sent", "status", "said"),
    [
        (b"{", 400, "not JSON"),
        (b"[]", 400, "message: found a list, an object is allowed"),
        (b"{}", 400, "node: is missing"),
        (body(serial="x"), 400, "serial: found a string, int is allowed"),
        (body(serial=True), 400, "serial: found a boolean"),
        (body(gangs=[{"kind": "training", "number": 1, "state": 5}]), 400, "gangs[0].state: found a number"),
        (body(events=[{"attempt": 1, "rank": 0, "sequence": 1, "event": []}]), 400, "events[0].event: found a list"),
        (b'{"node":"n1","session":"s1","serial":NaN}', 400, "NaN is not JSON"),
        (b"[" * 200_000, 400, "not JSON"),
        (body(node="n\u0000"), 400, "printable ASCII"),
        (body(session=""), 400, "printable ASCII"),
        (body(protocol=9), 426, "protocol 9, this supervisor 1"),
        (body(protocol=2, unknown={"from": "a newer version"}), 200, "recorded"),
    ],
)
def test_a_report_that_does_not_fit_is_refused_with_its_place(
    served: Served, sent: bytes, status: int, said: str
) -> None:
    answered, text = served.request("POST", "/v1/report", sent)
    assert answered == status
    assert said in text
    assert served.hub.report("n1") is None or status == 200


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("POST", "/v1/report", {"Authorization": "Bearer wrong"}, 401),
        ("POST", "/v1/report", {"Authorization": ""}, 401),
        ("POST", "/v1/report", {"Authorization": f"Basic {TOKEN}"}, 401),
        ("GET", "/v1/orders?node=n1&session=s1&after=0&wait=0", {"Authorization": f"Bearer {TOKEN}x"}, 401),
        ("POST", "/v1/report", {"Content_Length": str(MAX_BODY + 1)}, 413),
        ("POST", "/v1/report", {"Content_Length": "9" * 30}, 413),
        ("POST", "/v1/report", {"Content_Length": "-1"}, 411),
        ("POST", "/v1/report", {"Transfer_Encoding": "chunked", "Content_Length": "0"}, 411),
        ("POST", "/v1/reports", {}, 404),
        ("GET", "/etc/passwd", {}, 404),
        ("GET", "/v1/orders?node=n1&session=s1&after=x", {}, 400),
        ("GET", "/v1/orders?node=n1&session=s1&after=-1", {}, 400),
        ("GET", "/v1/orders?node=n1&session=s1&wait=nan", {}, 400),
        ("GET", "/v1/orders?session=s1", {}, 400),
        ("GET", "/v1/orders?node=n1&session=s1&after=0&wait=0", {}, 204),
    ],
)
def test_who_and_what_is_let_in(served: Served, method: str, path: str, headers: dict[str, str], status: int) -> None:
    answered, text = served.request(method, path, None, **headers)
    assert answered == status
    assert bool(text) == (status != 204)
    assert "Traceback" not in text


def test_an_oversized_body_is_refused_before_it_is_read(served: Served) -> None:
    with socket.create_connection(served.server.address, timeout=5) as connection:
        head = f"POST /v1/report HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {MAX_BODY + 1}\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")
        until(lambda: connection.recv(4096) == b"", "the server hung up")


def test_the_client_tells_refusals_from_absence(served: Served) -> None:
    with pytest.raises(Refused, match="401"):
        served.client(token="x" * 20).post_report(Report("n1", "s1"))
    served.server.unavailable = "no leader"
    with pytest.raises(SyncUnavailable, match="503: no leader"):
        served.client().post_report(Report("n1", "s1"))
    served.server.unavailable = None
    with pytest.raises(Refused, match="426"):
        served.client().post_report(Report("n1", "s1", protocol=7))
    client = served.client()
    client.post_report(Report("n1", "s1"))
    served.server.stop()
    with pytest.raises(SyncUnavailable):
        client.post_report(Report("n1", "s1"))


def test_a_newer_session_ends_the_older_one(served: Served) -> None:
    old, new = served.client("s1"), served.client("s2")
    old.post_report(Report("n1", "s1", serial=4))
    outcome: list[object] = []

    def wait_for_order() -> None:
        try:
            outcome.append(old.poll_order(0, wait=5))
        except Refused as error:
            outcome.append(error)

    poll = threading.Thread(target=wait_for_order)
    poll.start()
    new.post_report(Report("n1", "s2", serial=1))
    poll.join(2)
    assert isinstance(outcome[0], Refused), "the waiting poll ended as well"
    assert outcome[0].status == 409
    with pytest.raises(Refused, match="another worker process"):
        old.post_report(Report("n1", "s1", serial=5))
    assert served.hub.session("n1") == "s2"


def test_connections_come_and_go_as_the_hub_sees_them(served: Served) -> None:
    client = served.client()
    assert not served.hub.connected("n1")
    client.post_report(Report("n1", "s1"))
    assert served.hub.connected("n1")
    assert 0 <= served.hub.silent_ms("n1") < 2000
    client.close()
    until(lambda: not served.hub.connected("n1"), "the connection seen closed")
    assert served.rings[-1] == Ring("n1", True, "connection lost")


def test_a_connection_speaks_for_one_node(served: Served) -> None:
    connection = http.client.HTTPConnection(*served.server.address, timeout=5)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    connection.request("POST", "/v1/report", json.dumps(encode(Report("n1", "s1"))), headers)
    connection.getresponse().read()
    connection.request("POST", "/v1/report", json.dumps(encode(Report("n2", "s2"))), headers)
    assert connection.getresponse().status == 400
    connection.close()
    assert served.hub.report("n2") is None


def test_an_order_wakes_the_poll_that_waits_for_it(served: Served) -> None:
    client, took, after = served.client(), [], 0
    given: list[float] = []

    def give(key: str) -> None:
        given.append(time.monotonic())
        served.hub.set_order("n1", Order(0, key))

    for number in range(10):
        threading.Timer(0.02, give, [str(number)]).start()
        order = client.poll_order(after, wait=5)
        took.append(1000 * (time.monotonic() - given[-1]))
        assert order is not None
        assert (order.key, order.revision > after) == (str(number), True)
        after = order.revision
    print(f"set_order to the waiting client: median {statistics.median(took):.1f} ms, worst {max(took):.1f} ms")
    assert client.poll_order(after, wait=0.05) is None
    client.close()


def test_events_are_acknowledged_as_seen_at_once_and_as_recorded_when_they_are(served: Served) -> None:
    client = served.client()
    events = tuple(EventRecord(1, 3, n, {"event": "phase", "phase": "train"}) for n in (1, 2, 3))
    answer = client.post_report(Report("n1", "s1", serial=1, events=events))
    assert (answer.seen, answer.recorded) == (((1, 3, 3),), ((1, 3, 0),))
    served.hub.mark_recorded(served.hub.take_events(limit=2)[-1].cursor)
    assert client.post_report(Report("n1", "s1", serial=2)).recorded == ((1, 3, 2),)
    client.close()


def test_a_short_token_is_no_token() -> None:
    with pytest.raises(ValueError, match="at least 16"):
        SyncServer(SyncHub(), "secret")
