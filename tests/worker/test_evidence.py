"""What a rank shows while it stands still: its own work, the bytes that it moves, and what its process does."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from supervisor.wire.messages import Standby, TaskOrder, TrainerCommand
from tests.worker.bench import Bench, alive, eventually, gang, marked, trainer
from tests.worker.test_tasks import command_line

IDLE, BUSY = 0.05, 0.5  # cores; what the supervisor takes for a process that waits, and for one that spins
READY = '{"event":"phase","phase":"train"}'
RANKS = f"""
import os, signal, sys, threading, time
rank = int(os.environ["MARIN_SUP_PROCESS_ID"])
stacks = os.path.join(os.path.dirname(os.environ["MARIN_SUP_EVENTS"]), "stacks")
def ready():
    with open(os.environ["MARIN_SUP_EVENTS"], "a") as events:
        events.write('{READY}' + chr(10))
"""


def completed(step: int, own_seconds: float | None) -> str:
    said = {} if own_seconds is None else {"ownSeconds": own_seconds}
    return json.dumps({"event": "step", "step": step, "state": "completed", **said})


def emit(*events: str) -> tuple[str, ...]:
    return tuple(word for event in events for word in ("emit", event))


@pytest.mark.parametrize(
    ("own_seconds", "own_ms"),
    [
        ((9.0,) * 9 + (0.2,) * 7 + (30.0,), 200),  # nine seconds are long ago, thirty are one outlier
        ((0.0001,), 1),
        ((1e300,), 86_400_000),
        ((None, None), 0),
    ],
    ids=["the last eight count", "very little is not nothing", "an absurd number is bounded", "a silent trainer"],
)
def test_a_ranks_own_work_in_a_step_is_reported(
    bench: Bench, own_seconds: tuple[float | None, ...], own_ms: int
) -> None:
    bench.worker()
    steps = [completed(number, own) for number, own in enumerate(own_seconds, start=1)]
    bench.order(gang(1, trainer(*emit(*steps), "exit", "0")))
    ended = bench.until_exit()
    assert (ended.completed, ended.own_ms) == (len(own_seconds), own_ms)


def test_bytes_that_move_are_reported_within_a_second_and_start_anew_with_the_next_phase(
    bench: Bench, tmp_path: Path
) -> None:
    def progress(phase: str, size: int) -> str:
        return json.dumps({"event": "progress", "phase": phase, "bytes": size})

    def phase(name: str) -> str:
        return json.dumps({"event": "phase", "phase": name})

    files = [tmp_path / name for name in ("more", "further", "next")]
    words = [
        *emit(phase("restore"), progress("restore", 1000)),
        *("wait-file", str(files[0]), *emit(progress("restore", 5 << 30))),
        *("wait-file", str(files[1]), *emit(progress("save", 77), progress("restore", 6 << 30))),
        *("wait-file", str(files[2]), *emit(phase("train"), completed(1, None)), "hang"),
    ]
    bench.worker()
    bench.order(gang(1, trainer(*words)))

    def moved(size: int) -> bool:
        rank = bench.rank()
        return rank is not None and rank.moved == size

    eventually(lambda: moved(1000), "the first bytes")
    for file, size in ((files[0], 5 << 30), (files[1], 6 << 30)):
        file.touch()
        eventually(lambda size=size: moved(size), f"{size} bytes moved", seconds=1.0)
    files[2].touch()
    eventually(lambda: (rank := bench.rank()) and rank.completed == 1 and rank.moved == 0, "a phase without bytes")


def program(directory: Path, text: str, ranks: int) -> dict[str, Any]:
    """A gang of `ranks` that run `text`; it knows `rank`, `stacks` (its file) and `ready()`."""
    (directory / "program.py").write_text(RANKS + text)
    command = TrainerCommand(module="program", working_directory=str(directory))
    return {"number": 1, "program": command, "ranks": tuple(range(ranks))}


def start(bench: Bench, members: dict[str, Any]) -> None:
    bench.worker()
    bench.order(gang(**members))
    for rank in members["ranks"]:
        bench.until_running(rank)


def look(bench: Bench, members: dict[str, Any], name: str = "e", attempt: int = 1) -> dict[int, dict[str, Any]]:
    """What the worker answers to the question `name`, by rank."""
    bench.order(gang(**members), tasks=(TaskOrder(name, "evidence", {"attempt": attempt}),))
    result = bench.result(name)
    assert result.ok, result.error
    return {seen["rank"]: seen for seen in result.result["ranks"]}


def stacks(bench: Bench, rank: int = 0) -> Path:
    return bench.workdir / "a0001" / f"rank-{rank:04d}" / "stacks"


def test_each_rank_shows_what_its_main_thread_does_within_a_second(bench: Bench, tmp_path: Path) -> None:
    text = """
def spin_in_python():
    ready()
    while True: pass
def sleep_in_a_c_call():
    for name in "ab":
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    ready()
    time.sleep(600)
def fall(depth):
    if depth: fall(depth - 1)
    else: sleep_at_the_bottom()
def sleep_at_the_bottom():
    ready()
    time.sleep(600)
[spin_in_python, sleep_in_a_c_call, lambda: fall(200)][rank]()
"""
    members = program(tmp_path, text, 3)
    start(bench, members)
    asked = time.monotonic()
    seen = look(bench, members)
    assert time.monotonic() - asked < 1.0
    spinning, sleeping, deep = seen[0], seen[1], seen[2]
    where = (tmp_path / "program.py").relative_to(tmp_path.parent)
    assert spinning["stack"][0].startswith(f"{where}:")
    assert spinning["stack"][0].endswith(" spin_in_python")
    assert spinning["stack"][1].endswith(" <module>"), "innermost first"
    assert spinning["state"] == "R"
    assert BUSY < spinning["cpu"] < 1.5
    assert sleeping["stack"][0].endswith(" sleep_in_a_c_call"), "the main thread's, not another's"
    assert sleeping["state"] == "S"
    assert sleeping["cpu"] < IDLE
    assert [frame.split()[1] for frame in deep["stack"]] == ["sleep_at_the_bottom", *["fall"] * 31]
    assert [one["error"] for one in seen.values()] == ["", "", ""]


def test_a_rank_that_was_a_standby_shows_its_stack_as_well(bench: Bench, tmp_path: Path) -> None:
    members = program(tmp_path, "ready()\ntime.sleep(600)", 1)
    members["program"] = dataclasses.replace(members["program"], preload=("json",))
    bench.worker()
    bench.order(standby=Standby(members["program"], 1))
    eventually(lambda: any(b"standby_start" in command_line(pid) for pid in marked(bench.workdir)), "a standby")
    bench.order(gang(**members), standby=Standby(members["program"], 1))
    assert b"standby_start" in command_line(bench.until_running().pid), "the standby has become the rank"
    assert look(bench, members)[0]["stack"][0].endswith(" <module>")


def test_a_stopped_rank_is_seen_as_such_and_is_not_signalled(bench: Bench, tmp_path: Path) -> None:
    members = program(tmp_path, "ready()\ntime.sleep(600)", 1)
    start(bench, members)
    pid = bench.rank().pid
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: status(pid, "State").startswith("T"), "the rank stopped")
    seen = look(bench, members)[0]
    assert (seen["state"], seen["cpu"], seen["stack"]) == ("T", 0.0, [])
    assert seen["error"] == "stopped, so it shows no stack"
    assert int(status(pid, "ShdPnd"), 16) == 0, "no signal waits for it"
    os.kill(pid, signal.SIGCONT)
    assert look(bench, members, "later")[0]["stack"][0].endswith(" <module>")


def status(pid: int, member: str) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(member + ":"))


def test_a_program_that_cannot_show_its_stack_survives_and_says_why(bench: Bench) -> None:
    command = ("/bin/sh", "-c", f"echo '{READY}' > $MARIN_SUP_EVENTS; exec sleep 600")
    members = {"number": 1, "program": TrainerCommand(command=command), "ranks": (0,)}
    start(bench, members)
    seen = look(bench, members)[0]
    assert "no handler for SIGUSR1" in seen["error"]
    assert (seen["state"], seen["stack"]) == ("S", [])
    assert seen["cpu"] < IDLE
    look(bench, members, "again")
    assert alive(bench.rank().pid)
    assert bench.rank().exit is None


def test_a_trainer_that_spoils_its_own_stacks_costs_only_its_own(bench: Bench, tmp_path: Path) -> None:
    text = """
def own_handler(): signal.signal(signal.SIGUSR1, lambda number, frame: None)
def fifo(): os.remove(stacks); os.mkfifo(stacks)
def link(): os.remove(stacks); os.symlink(sys.executable, stacks)
def gone(): os.remove(stacks)
def nonsense():
    signal.signal(signal.SIGUSR1, lambda number, frame: open(stacks, "wb").write(b"\\xff\\x1b[2J" * 100_000))
def overfull():
    with open(stacks, "ab") as file: file.write(b"x" * (2 << 20))
[own_handler, fifo, link, gone, nonsense, overfull][rank]()
ready()
while True: time.sleep(0.01)
"""
    members = program(tmp_path, text, 6)
    start(bench, members)
    seen = look(bench, members)
    assert "did not answer" in seen[0]["error"]
    assert "replaced" in seen[1]["error"]
    assert "cannot be opened" in seen[2]["error"]
    assert "cannot be opened" in seen[3]["error"]
    assert "does not reach the main thread" in seen[4]["error"]
    assert seen[5]["stack"][0].endswith(" <module>")
    assert stacks(bench, 5).stat().st_size < 64 << 10, "the file does not grow without end"
    assert all(seen[rank]["stack"] == [] for rank in range(5))
    assert all(bench.rank(rank).exit is None for rank in range(6))


def test_the_same_question_is_answered_once_even_by_a_restarted_worker(bench: Bench, tmp_path: Path) -> None:
    members = program(tmp_path, "ready()\ntime.sleep(600)", 1)
    start(bench, members)
    answer = look(bench, members, "one")
    dumped = stacks(bench).stat().st_size
    assert dumped > 0
    assert look(bench, members, "one") == answer
    one, other = (TaskOrder(name, "evidence", {"attempt": 1}) for name in ("one", "other"))
    bench.order(gang(**members), tasks=(one, other))
    bench.result("other")
    assert stacks(bench).stat().st_size == 2 * dumped, "asked twice for two questions"
    (guard,) = bench._workers
    guard.kill()
    guard.wait()
    eventually(lambda: not marked(bench.workdir), "the ranks ended with their worker")
    bench.worker()
    bench.order(tasks=(one, TaskOrder("new", "evidence", {"attempt": 1})))
    assert bench.result("one").result == {"ranks": [answer[0]]}
    assert bench.result("new").result == {"ranks": []}, "the ranks are gone"


def test_of_an_older_attempt_and_of_ranks_that_have_ended_nothing_is_seen(bench: Bench) -> None:
    members = {"number": 3, "program": trainer("emit", READY, "exit", "0"), "ranks": (0,)}
    bench.worker()
    bench.order(gang(**members))
    bench.until_exit(0, 3)
    assert look(bench, members, "ended", attempt=3) == {}
    assert look(bench, members, "older", attempt=2) == {}
    bench.order(gang(**members), tasks=(TaskOrder("bad", "evidence", {"attempt": "newest"}),))
    assert not bench.result("bad").ok
    assert "attempt: a number is needed" in bench.result("bad").error


def test_a_look_at_the_ranks_waits_for_no_other_task(bench: Bench, tmp_path: Path) -> None:
    members = program(tmp_path, "ready()\ntime.sleep(600)", 1)
    start(bench, members)
    endless = {"trainer": {"module": "tests.worker.fake_trainer", "args": ["hang"]}, "layouts": [{}]}
    checks = [TaskOrder(f"c{number}", "check", endless) for number in range(3)]
    bench.order(gang(**members), tasks=tuple(checks))
    eventually(lambda: len(marked(bench.workdir)) == 5, "the rank, and two checks with their trainers")
    bench.order(gang(**members), tasks=(*checks, TaskOrder("e", "evidence", {"attempt": 1})))
    assert bench.result("e").result["ranks"][0]["stack"]
