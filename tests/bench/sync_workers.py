"""The workers' end of `sync.py`: `HOST PORT TOKEN reports|return ROUNDS` prints the seconds of each round."""

from __future__ import annotations

import sys
import threading
import time

from supervisor.wire.client import SyncClient
from supervisor.wire.messages import EventRecord, GangReport, RankReport, Report

WORKERS, RANKS = 176, 4
WITHIN = 60.0  # seconds for a round


def node_name(number: int) -> str:
    return f"r{number // 16}n{number % 16}"


def main() -> None:
    host, port, token, mode, rounds = sys.argv[1:]
    clients = [
        SyncClient(lambda: (host, int(port), token), node_name(number), f"{mode}-{number}") for number in range(WORKERS)
    ]
    if mode == "reports":
        _round(clients, 0, _report)  # connects
    print("ready", flush=True)
    for number in range(1, int(rounds) + 1):
        if mode == "return":
            for client in clients:
                client.close()
        print(_round(clients, number, _report if mode == "reports" else _return), flush=True)


def _round(clients: list[SyncClient], serial: int, act) -> float:  # type: ignore[no-untyped-def]
    """Seconds from the moment that all may go until the last one is served. Raises what any of them raised."""
    start, failed = threading.Barrier(len(clients) + 1), []

    def work(number: int, client: SyncClient) -> None:
        report = _made(number, client, serial)
        start.wait(WITHIN)
        try:
            act(client, report)
        except Exception as error:  # noqa: BLE001 (raised again by the main thread)
            failed.append(error)

    threads = [threading.Thread(target=work, args=pair, daemon=True) for pair in enumerate(clients)]
    for thread in threads:
        thread.start()
    start.wait(WITHIN)
    began = time.perf_counter()
    for thread in threads:
        thread.join(WITHIN)
    if failed:
        raise failed[0]
    return time.perf_counter() - began


def _report(client: SyncClient, report: Report) -> None:
    client.post_report(report)


def _return(client: SyncClient, report: Report) -> None:
    client.post_report(report)
    if client.poll_order(after=0) is None:
        raise RuntimeError(f"{client.node} was given no order")


def _made(number: int, client: SyncClient, serial: int) -> Report:
    """What the worker of a node with 4 ranks says while they train."""
    ranks = range(number * RANKS, (number + 1) * RANKS)
    step = {"event": "step", "step": serial + 1, "state": "completed", "loss": 2.5, "tokens": 4096}
    events = tuple(EventRecord(1, rank, serial + 1, step) for rank in ranks)
    states = tuple(
        RankReport(rank=rank, state="running", pid=1000 + rank, phase="train", entered=serial + 1, completed=serial + 1)
        for rank in ranks
    )
    gangs = (GangReport("training", 1, "running", states),)
    return Report(client.node, client.session, serial=serial, gangs=gangs, events=events)


if __name__ == "__main__":
    main()
