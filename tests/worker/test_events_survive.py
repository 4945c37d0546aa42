"""Events reach the supervisor exactly once, whoever restarts; ranks never notice."""

from __future__ import annotations

import time
from pathlib import Path

from supervisor.wire.messages import Acknowledgement
from supervisor.worker.spool import EventSpool
from tests.worker.bench import NODE, Bench, alive, eventually, gang, trainer


def step(number: int) -> str:
    return f'{{"event":"step","step":{number},"state":"completed"}}'


def steps(bench: Bench) -> list[int]:
    return [record.event["step"] for record in bench.events]


def test_a_restarted_supervisor_gets_what_was_not_recorded_exactly_once(bench: Bench, tmp_path: Path) -> None:
    bench.worker()
    away, back = tmp_path / "away", tmp_path / "back"
    script = [word for n in (1, 2, 3) for word in ("emit", step(n))]
    script += [
        "wait-file",
        str(away),
        "emit",
        step(4),
        "print",
        "four",
        "wait-file",
        str(back),
        "emit",
        step(5),
        "hang",
    ]
    bench.order(gang(1, trainer(*script)))
    eventually(lambda: steps(bench) == [1, 2, 3], "the first three steps")
    bench.hub.mark_recorded(bench.hub.take_events(limit=2)[-1].cursor)
    pid = bench.rank().pid
    assert pid is not None

    bench.server.stop()
    away.touch()
    eventually(lambda: "four" in bench.output(), "the rank at step 4 while nobody listens")
    assert alive(pid)
    bench.events.clear()
    bench.serve(recorded={(1, 0): 2})
    eventually(lambda: steps(bench) == [3, 4], "what was not recorded, again")
    back.touch()
    eventually(lambda: steps(bench) == [3, 4, 5], "and what came later")
    assert [record.sequence for record in bench.events] == [3, 4, 5]
    assert bench.rank().completed == 5
    assert alive(pid), "the rank never noticed"


def test_a_restarted_supervisors_order_is_followed_though_it_counts_anew(bench: Bench) -> None:
    bench.worker()
    bench.order(gang(1, trainer("emit", step(1), "hang")))
    bench.until_running()
    bench.server.stop()
    bench.serve()
    bench.order(gang(1, trainer(), command="stop"))
    assert bench.until_exit().exit.by_us


def test_ranks_go_on_while_the_supervisor_answers_that_it_is_unavailable(bench: Bench, tmp_path: Path) -> None:
    bench.worker()
    gate = tmp_path / "gate"
    bench.order(gang(1, trainer("emit", step(1), "wait-file", str(gate), "emit", step(2), "print", "two", "hang")))
    eventually(lambda: steps(bench) == [1], "the first step")
    bench.server.unavailable = "the API server does not answer"
    gate.touch()
    eventually(lambda: "two" in bench.output(), "step 2")
    assert steps(bench) == [1]
    bench.server.unavailable = None
    eventually(lambda: steps(bench) == [1, 2], "step 2 delivered")


def test_a_worker_that_was_killed_delivers_from_its_disk_what_it_had_not_delivered(bench: Bench) -> None:
    first = bench.worker()
    bench.order(gang(1, trainer("emit", step(1), "wait-control", "save", "emit", step(2), "print", "two", "hang")))
    eventually(lambda: steps(bench) == [1], "the first step")
    bench.server.unavailable = "away"
    (bench.workdir / "a0001/rank-0000/control.json").write_text('{"version":1,"save":1,"stop":false,"fail":0}')
    eventually(lambda: "two" in bench.output(), "step 2")
    spooled = bench.workdir / "spool" / "a1-r0.jsonl"
    eventually(lambda: spooled.read_text().count("\n") == 2, "step 2 on disk")
    first.kill()
    first.wait()
    bench.server.unavailable = None
    bench.worker()
    eventually(lambda: steps(bench) == [1, 2], "step 2 from the disk, step 1 not again")


def test_an_older_sessions_words_are_refused_and_its_ranks_stopped(bench: Bench, tmp_path: Path) -> None:
    old = bench.worker()
    bench.order(gang(1, trainer("emit", step(1), "hang")))
    pid = bench.until_running().pid
    assert pid is not None
    bench.hub.newer_order(NODE, "a-newer-session", 0)  # another worker process registers for the node
    assert old.wait(15) == 75
    assert not alive(pid)


def test_a_full_spool_drops_the_oldest_progress_first_and_counts_it(tmp_path: Path) -> None:
    spool = EventSpool(tmp_path, max_events=100)
    spool.append(1, 0, {"event": "alarm", "kind": "data", "message": "kept"})
    for number in range(150):
        spool.append(1, 0, {"event": "step", "step": number + 1, "state": "completed"})
    kept = spool.batch()
    assert kept[0].event["event"] == "alarm"
    assert kept[-1].event["step"] == 150
    assert spool.dropped == 151 - len(kept) > 50


def test_a_spool_forgets_what_is_recorded_and_keeps_its_numbers_over_a_restart(tmp_path: Path) -> None:
    spool = EventSpool(tmp_path)
    for number in range(1, 6):
        spool.append(1, 3, {"event": "step", "step": number, "state": "completed"})
    spool.flush()
    spool.acknowledge(Acknowledgement(seen=((1, 3, 4),), recorded=((1, 3, 2),), supervisor="a"))
    assert [r.sequence for r in spool.batch()] == [5]
    spool.acknowledge(Acknowledgement(supervisor="b"))
    assert [r.sequence for r in spool.batch()] == [3, 4, 5], "another supervisor has seen nothing"
    with (tmp_path / "a1-r3.jsonl").open("a") as file:
        file.write('{"s": 6, "e": {"ev')  # a crash within a write
    assert [r.sequence for r in EventSpool(tmp_path).batch()] == [1, 2, 3, 4, 5], "the disk keeps a bit more"


def test_a_batch_is_shared_fairly_so_that_a_flood_hides_nobody(tmp_path: Path) -> None:
    spool = EventSpool(tmp_path)
    for number in range(5000):
        spool.append(1, 0, {"event": "step", "step": number + 1, "state": "completed"})
    spool.append(1, 1, {"event": "alarm", "kind": "data", "message": "here"})
    began = time.monotonic()
    batch = spool.batch()
    assert 100 <= len(batch) <= 600
    assert (1, "here") in [(r.rank, r.event.get("message")) for r in batch]
    print(f"a batch of {len(batch)} out of 5001: {1000 * (time.monotonic() - began):.1f} ms")
