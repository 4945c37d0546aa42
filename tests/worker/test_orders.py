"""Orders are level-triggered, and attempts are fenced by their numbers."""

from __future__ import annotations

import dataclasses

from supervisor.wire.messages import GangReport
from tests.worker.bench import NODE, Bench, alive, eventually, gang, trainer

TRAIN = '{"event":"phase","phase":"train"}'
RUNS = trainer("emit", TRAIN, "hang")


def report_of(bench: Bench, number: int) -> GangReport | None:
    report = bench.hub.report(NODE)
    return next((g for g in report.gangs if g.number == number), None) if report else None


def test_a_newer_attempt_starts_only_when_the_older_one_has_ended(bench: Bench) -> None:
    bench.worker()
    bench.order(gang(1, trainer("ignore-term", "emit", TRAIN, "hang"), grace_ms=400))
    old = bench.until_running().pid
    assert old is not None
    bench.order(gang(2, RUNS), gang(1, RUNS, grace_ms=400))
    eventually(lambda: report_of(bench, 2), "the new attempt reported")
    assert report_of(bench, 2).ranks[0].pid is None or not alive(old), "started beside the old one"
    bench.until_running(0, 2)
    assert not alive(old)
    assert bench.hub.report(NODE).newest_attempt == 2


def test_an_older_attempt_is_refused_also_by_a_restarted_worker(bench: Bench) -> None:
    first = bench.worker()
    bench.order(gang(5, RUNS))
    bench.until_running(0, 5)
    bench.order(gang(4, RUNS))
    refused = eventually(lambda: report_of(bench, 4), "an answer about attempt 4")
    assert (refused.state, refused.ranks) == ("refused", ())
    assert "ordered attempt 5" in refused.reason
    first.kill()
    first.wait()
    bench.worker()
    assert bench.hub.report(NODE).newest_attempt == 5
    again = eventually(lambda: report_of(bench, 4), "the restarted worker's answer")
    assert again.state == "refused"


def test_a_restarted_worker_never_starts_the_ranks_of_the_same_attempt_again(bench: Bench) -> None:
    first = bench.worker()
    bench.order(gang(1, RUNS))
    bench.until_running()
    first.kill()
    first.wait()
    bench.worker()
    ended = eventually(lambda: report_of(bench, 1), "an answer about attempt 1")
    assert ended.state == "ended"
    assert [rank.state for rank in ended.ranks] == ["exited"]
    assert "restarted" in ended.ranks[0].exit.tail


def test_an_unknown_kind_of_gang_is_answered_and_harms_nobody(bench: Bench) -> None:
    bench.worker()
    burn_in = dataclasses.replace(gang(9, RUNS), kind="burn-in")
    bench.order(gang(1, RUNS), burn_in)
    bench.until_running()
    assert report_of(bench, 9).state == "unsupported"


def test_the_coordinators_port_is_offered_held_freed_for_rank_0_and_offered_anew(bench: Bench) -> None:
    bench.worker()
    offer = eventually(lambda: bench.hub.report(NODE).offer, "an offer")
    bind = (
        "import os, socket; h, p = os.environ['JAX_COORDINATOR_ADDRESS'].rsplit(':', 1);"
        "s = socket.socket(socket.AF_INET6); s.bind(('::', int(p))); s.listen(); print('bound')"
    )
    command = dataclasses.replace(trainer(), module=None, command=("python3", "-c", bind))
    bench.order(gang(1, command, coordinator=offer))
    assert bench.until_exit().exit.tail == "bound\n"
    following = eventually(lambda: bench.hub.report(NODE).offer, "the next offer")
    assert following != offer
    bench.order(gang(2, command, coordinator=following.replace("127.0.0.1", "10.0.0.1"), ranks=(1,)))
    held = bench.until_exit(1, 2).exit
    assert "Address already in use" in held.tail, "another node's rank 0: the port is still held"


def test_a_damaged_number_file_does_not_bring_an_old_attempt_back(bench: Bench) -> None:
    first = bench.worker()
    bench.order(gang(3, trainer("exit", "0")))
    bench.until_exit(0, 3)
    first.kill()
    first.wait()
    (bench.workdir / "newest_attempt").write_text("\0\0garbage")
    bench.worker()
    assert bench.hub.report(NODE).newest_attempt == 3
