"""Whatever a trainer prints or sends, the worker survives it, bounds it, counts it, and serves the other ranks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from supervisor.worker.event_pipe import Lines
from tests.worker.bench import Bench, agent_of, eventually, gang, trainer

TRAIN = '{"event":"phase","phase":"train"}'
LAST = '{"event":"step","step":9,"state":"completed"}'


def test_fifty_megabytes_of_garbage_are_drained_bounded_and_shown_printable(bench: Bench) -> None:
    bench.worker()
    bench.order(gang(1, trainer("flood", str(50_000_000), "print", "\\nthe end", "exit", "0")))
    ended = bench.until_exit(seconds=30)
    assert ended.exit.code == 0
    assert ended.output_bytes > 50_000_000
    tail = ended.exit.tail
    assert tail.endswith("the end\n")
    assert len(tail) <= 16 * 1024
    assert "\x1b" not in tail
    assert "\\x1b[31m" in tail
    kept = sum(path.stat().st_size for path in (bench.workdir / "a0001/rank-0000").glob("output.log*"))
    assert kept < 17 << 20


@pytest.mark.parametrize(
    ("words", "rejected"),
    [
        (("raw", "not json\\n[1]\\n\\n{\\n"), 3),
        (("huge", "200000", "raw", "\\n"), 1),
        (("huge", "200000", "raw", '\\n{"event":"step","step":1e400,"state":"completed"}\\n'), 2),
        (("raw", '{"event":"pha', "raw", 'se","phase":"train"}\\n'), 0),
        (("repeat", "3000", '{"event":"nonsense"}'), 3000),
        (("emit", '{"event":"checkpoint","state":"committed","attempt":4,"step":5}'), 1),
        (("emit", "[" * 10_000), 1),
    ],
    ids=[
        "not events",
        "a huge line",
        "an infinite step",
        "cut lines",
        "a flood",
        "an older attempt's save",
        "too deep",
    ],
)
def test_what_is_no_event_of_this_attempt_is_counted_and_the_next_one_still_counts(
    bench: Bench, words: tuple[str, ...], rejected: int
) -> None:
    bench.worker()
    bench.order(gang(5, trainer(*words, "emit", LAST, "exit", "0")))
    ended = bench.until_exit(0, 5)
    assert (ended.rejected_events, ended.completed, ended.exit.code) == (rejected, 9, 0)
    eventually(lambda: any(e.event.get("step") == 9 for e in bench.events), "the good event delivered")
    assert all(e.event["event"] != "checkpoint" for e in bench.events)


def test_a_flooding_rank_does_not_hold_up_its_neighbour(bench: Bench) -> None:
    bench.worker()
    flood = trainer("repeat", "40000", '{"event":"step","step":1,"state":"completed","metrics":{"a":1}}', "hang")
    bench.order(gang(1, flood, (0,)))
    bench.until_running()
    words = json.dumps({"event": "alarm", "kind": "data", "message": "look \u001b[2J here"})
    bench.order(gang(2, trainer("emit", words, "hang"), (1,)), gang(1, flood, (0,), grace_ms=100))
    alarm = eventually(lambda: next((e for e in bench.events if e.rank == 1), None), "the neighbour's alarm")
    assert alarm.event["message"] == "look \\x1b[2J here"


def test_the_worker_itself_stays_small_under_a_flood_of_events(bench: Bench) -> None:
    guard = bench.worker()
    metrics = json.dumps({f"m{i}": i for i in range(60)})
    event = f'{{"event":"step","step":1,"state":"completed","metrics":{metrics}}}'
    bench.order(gang(1, trainer("repeat", "6000", event, "print", "sent", "hang")))
    eventually(lambda: "sent" in bench.output(), "6 MB of events taken", seconds=30)
    eventually(lambda: len(bench.events) == 6000, "all of them delivered", seconds=30)
    resident = int(Path(f"/proc/{agent_of(guard.pid)}/statm").read_text().split()[1]) * 4 // 1024
    print(f"agent after a flood of 6000 large events: {resident} MiB")
    assert resident < 150


@pytest.mark.parametrize("cuts", [1, 2, 3, 7, 100])
def test_lines_are_the_same_however_the_stream_is_cut(cuts: int) -> None:
    text = b"one\n\ntwo\n" + b"x" * 30 + b"\nthree\n" + b"y" * 11 + b"\nfour\nrest"
    lines = Lines(limit=10)
    found = [line for start in range(0, len(text), cuts) for line in lines.feed(text[start : start + cuts])]
    assert found == [b"one", b"two", b"three", b"four"]
    assert lines.too_long == 2
