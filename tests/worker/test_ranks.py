"""A rank from its start to its end, as the supervisor hears of it."""

from __future__ import annotations

import json
import signal
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor.wire.messages import CheckpointRef, Control, TrainerCommand
from tests.worker.bench import NODE, Bench, alive, eventually, gang, trainer

HELLO = json.dumps(
    {
        "event": "hello",
        "contract": 1,
        "tokensPerStep": 8,
        "flopsPerStep": 1e9,
        "peakFlopsPerDevice": None,
        "devices": 2,
        "parameters": 7,
    }
)


def step(number: int, state: str = "completed") -> str:
    return json.dumps({"event": "step", "step": number, "state": state, "loss": 2.5})


TRAIN = '{"event":"phase","phase":"train"}'


def test_start_progress_and_exit_of_a_rank_are_reported(bench: Bench) -> None:
    bench.worker()
    bench.order(
        gang(1, trainer("emit", HELLO, "emit", TRAIN, "emit", step(1), "emit", step(2, "entered"), "exit", "0"))
    )
    ended = bench.until_exit()
    assert (ended.state, ended.phase, ended.completed, ended.entered) == ("exited", "train", 1, 2)
    assert (ended.exit.code, ended.exit.signal, ended.exit.by_us) == (0, None, False)
    assert bench.gang_state() == "ended"
    eventually(lambda: len(bench.events) == 4, "all four events")
    assert [(e.attempt, e.rank, e.sequence) for e in bench.events] == [(1, 0, n) for n in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("words", "code", "number", "said"),
    [
        (("exit", "78"), 78, None, ""),
        (("raise", "out of ideas"), 70, None, "ValueError: out of ideas"),
        (("die", "9"), None, 9, ""),
        (("print", "last words", "die", "11"), None, 11, "last words"),
    ],
)
def test_every_way_to_end_is_told_apart(
    bench: Bench, words: tuple[str, ...], code: int | None, number: int | None, said: str
) -> None:
    bench.worker()
    bench.order(gang(1, trainer(*words)))
    ended = bench.until_exit().exit
    assert (ended.code, ended.signal, ended.by_us) == (code, number, False)
    assert said in ended.tail


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (TrainerCommand(module="no_such_module.train"), "there is no module 'no_such_module.train'"),
        (TrainerCommand(module="json.nothing"), "there is no module 'json.nothing'"),
        (TrainerCommand(module="xml.dom"), "'xml.dom' is a package without a __main__"),
        (TrainerCommand(module="tests.worker.fake_trainer", preload=("no_such",)), "there is no module 'no_such'"),
        (TrainerCommand(command=("no-such-program",)), "'no-such-program' cannot be started"),
        (TrainerCommand(), "either a module or a command"),
        (TrainerCommand(module="json.tool", working_directory="/no/such/place"), "/no/such/place"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_trainer_that_cannot_be_started_is_a_configuration_error_with_one_clear_line(
    bench: Bench, command: TrainerCommand, said: str
) -> None:
    bench.worker()
    bench.order(gang(1, command))
    ended = bench.until_exit().exit
    assert ended.code == 78
    assert said in ended.tail
    assert "Traceback" not in ended.tail


def test_a_command_is_started_as_it_is_with_the_contract_in_its_environment(bench: Bench) -> None:
    bench.worker()
    script = 'echo "$MARIN_SUP_PROCESS_ID of $MARIN_SUP_NUM_PROCESSES, $COLOUR"; exit 3'
    command = TrainerCommand(command=("sh", "-c", script), environment={"COLOUR": "green"})
    bench.order(gang(1, command, ranks=(4, 5), world_size=6))
    assert bench.until_exit(4).exit.code == 3
    assert bench.until_exit(5).exit.tail == "5 of 6, green\n"


def test_a_rank_finds_the_environment_of_the_contract(bench: Bench, tmp_path: Path) -> None:
    bench.worker({"INHERITED": "yes", "PYTHONPATH": ""})
    found = tmp_path / "environ.json"
    command = trainer("environ", str(found), "exit", "0", environment={"FROM_MANIFEST": "1", "MARIN_SUP_RACK": "wrong"})
    bench.order(gang(7, command, ranks=(0, 1), resume=CheckpointRef(3, 40), cache="/cache"))
    bench.until_exit(1, 7)
    environment = json.loads(found.read_text())
    assert (environment["INHERITED"], environment["FROM_MANIFEST"], environment["PYTHONPATH"]) == ("yes", "1", "")
    assert environment["MARIN_SUP_RACK"] == "0"
    assert environment["MARIN_SUP_RESUME"] == "3:40"
    assert environment["MARIN_SUP_ATTEMPT"] == "7"
    assert json.loads(Path(environment["MARIN_SUP_PLAN"]).read_text())["run"] == "test"


def test_the_control_file_changes_while_the_rank_runs(bench: Bench) -> None:
    bench.worker()
    bench.order(gang(1, trainer("emit", TRAIN, "wait-control", "save", "wait-control", "fail", "exit", "75"), (0, 1)))
    bench.until_running()
    bench.order(gang(1, trainer("changed arguments change nothing"), (0, 1), control=Control(save=1)))
    bench.order(gang(1, trainer(), (0, 1), control=Control(save=1, fail=((0, 1),))))
    assert bench.until_exit(0).exit.code == 75
    assert bench.rank(1).exit is None, "the fault was meant for rank 0 alone"


def test_a_rank_stops_on_term_and_the_exit_says_that_we_asked(bench: Bench) -> None:
    bench.worker()
    bench.order(gang(1, trainer("emit", TRAIN, "hang")))
    bench.until_running()
    bench.order(gang(1, trainer(), command="stop"))
    ended = bench.until_exit().exit
    assert (ended.signal, ended.by_us) == (signal.SIGTERM, True)


def test_a_rank_that_ignores_term_is_killed_after_the_grace_with_all_that_it_started(bench: Bench) -> None:
    bench.worker()
    bench.order(gang(1, trainer("ignore-term", "child", "escape", "emit", TRAIN, "hang"), grace_ms=300))
    bench.until_running()
    children = [bench.printed_pid("child"), bench.printed_pid("escaped")]
    bench.order()  # an order that no longer names the gang stops it as well
    ended = bench.until_exit().exit
    assert (ended.signal, ended.by_us) == (signal.SIGKILL, True)
    eventually(lambda: not any(alive(pid) for pid in children), "the rank's children dead")
    eventually(lambda: not bench.hub.report(NODE).gangs, "the gang forgotten once its end was reported")


def test_what_a_rank_leaves_behind_dies_with_it_and_its_neighbour_is_untouched(bench: Bench) -> None:
    bench.worker()
    words = trainer("child", "escape", "emit", TRAIN, "hang")
    bench.order(gang(1, words, (0, 1)))
    killed = bench.until_running(0)
    bench.until_running(1)
    child, escaped = bench.printed_pid("child"), bench.printed_pid("escaped")
    neighbours = [int(line.split()[1]) for line in bench.output(1).splitlines()]
    assert killed.pid is not None
    Bench.kill(killed.pid)
    assert bench.until_exit(0).exit.signal == signal.SIGKILL
    eventually(lambda: not alive(child) and not alive(escaped), "the killed rank's children dead")
    assert all(alive(pid) for pid in (bench.rank(1).pid, *neighbours))


def test_an_exit_rings_the_doorbell_at_once_and_so_does_a_start(bench: Bench) -> None:
    bench.worker()
    ended, started = [], []
    for attempt in range(1, 6):
        ordered = time.monotonic()
        bench.order(gang(attempt, trainer("emit", TRAIN, "hang")))
        started.append(until_rung(bench, ordered, lambda n=attempt: bench.rank(0, n) and bench.rank(0, n).pid))
        pid = bench.until_running(0, attempt).pid
        assert pid is not None
        killed = time.monotonic()
        Bench.kill(pid)
        ended.append(until_rung(bench, killed, lambda n=attempt: bench.rank(0, n).exit))
    for what, took in (("set_order to a started rank heard of", started), ("SIGKILL of a rank to the doorbell", ended)):
        print(f"{what}: median {statistics.median(took):.1f} ms, worst {max(took):.1f} ms")


def until_rung(bench: Bench, since: float, seen: Callable[[], object]) -> float:
    """Milliseconds from `since` to the first urgent ring at which `seen` holds."""
    while True:
        at, ring = bench.rings.get(timeout=10)
        if at >= since and ring.urgent and seen():
            return 1000 * (at - since)
