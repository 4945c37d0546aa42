"""What people read, compared with golden files."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from supervisor.api.convert import core_spec
from supervisor.cli.exit_codes import ExitCode
from supervisor.cli.program import program_typed
from supervisor.cli.screen.live import LiveScreen, picture
from supervisor.cli.screen.plain import PlainScreen
from supervisor.cli.screen.summary import summary
from supervisor.core.actions import SendOrder, WorkerOrder
from supervisor.core.decision import Note
from supervisor.core.incident import Outcome
from supervisor.core.memory import Phase, Stage
from supervisor.core.observation import Worker
from supervisor.core.reasons import Reason
from supervisor.local.rundir import RunDirectory, claim
from supervisor.local.screen import View
from supervisor.observe.journal import Journal
from tests import builders
from tests.cli import told_runs
from tests.cli.conftest import Call
from tests.golden_file import assert_golden

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def show(**changes: object) -> View:
    parts: dict[str, object] = {
        "memory": told_runs.memory(),
        "progress": told_runs.progress(),
        "fleet": told_runs.FLEET,
        "workers": tuple(Worker(node, "s", True) for node in ("r0n0", "r0n2", "r1n0", "r1n1", "r1n2")),
        "now_ms": told_runs.NOW,
        "notes": (),
        "incidents": (told_runs.lost_node(),),
    }
    return View(**(parts | changes))  # type: ignore[arg-type]


VIEWS = {
    "running": show(),
    "starting": show(
        memory=told_runs.memory(
            phase=Phase.STARTING,
            attempt=told_runs.attempt(1, 0, Stage.LAUNCHING, parent=None),
            checkpoints=(),
            high_step=0,
            total_steps=None,
        ),
        progress=told_runs.progress(attempt=1, phase="compile", loss=None, eval_loss=None, pace=[], commit_times={}),
        incidents=(),
    ),
    "replaying": show(memory=told_runs.memory(attempt=told_runs.attempt(2, 42))),
    "held": show(memory=told_runs.held(), incidents=(told_runs.lost_node(), told_runs.hostile_incident())),
}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", VIEWS)
def test_the_live_screen(name: str, width: int, runs: Path) -> None:
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    spec = core_spec(told_runs.manifest())
    console.print(picture(VIEWS[name], spec, RunDirectory(runs / "hero"), width))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(len(line) <= width for line in text.splitlines())
    assert not CONTROL.search(text)
    assert_golden(f"cli/live-{name}-{width}.txt", text)


def test_the_live_screen_keeps_notes_above_itself_and_goes_without_a_trace(runs: Path) -> None:
    console = Console(width=80, file=io.StringIO(), force_terminal=True, color_system=None)
    screen = LiveScreen(core_spec(told_runs.manifest()), RunDirectory(runs / "hero"), console)
    notes = (Note(Reason.NODE_LOST, f"r0n1 is gone {told_runs.ESCAPE}"), Note(Reason.CHECKPOINT_COMMITTED, "a2:80"))
    screen.show(show(notes=notes))
    screen.close()
    written = console.file.getvalue()  # type: ignore[attr-defined]
    assert "NodeLost  r0n1 is gone \\x1b[31mred\\x07" in written
    assert "CheckpointCommitted" not in written  # a fact of the picture, not a line each
    assert written.rstrip().endswith("\x1b[2K")  # the picture is wiped


def test_a_terminal_that_is_gone_ends_no_run(runs: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    console = Console(width=80, file=Gone(), force_terminal=True)
    screen = LiveScreen(core_spec(told_runs.manifest()), RunDirectory(runs / "hero"), console)
    for _ in range(3):
        screen.show(show(notes=(Note(Reason.NODE_LOST, "r0n1 is gone"),)))
    screen.close()
    assert [record.message for record in caplog.records] == [
        "the terminal cannot be written to any more: [Errno 5] Input/output error"
    ]


def test_progress_in_plain_lines(runs: Path) -> None:
    lines: list[str] = []
    screen = PlainScreen("hero", RunDirectory(runs / "hero"), lines.append)
    step = told_runs.attempt
    for after, completed in ((0, 1), (500, 2), (1_000, 17), (4_000, 18), (12_000, 19)):
        screen.show(show(memory=told_runs.memory(attempt=step(2, completed)), now_ms=told_runs.NOW + after))
    screen.show(show(notes=(Note(Reason.NODE_LOST, f"gone {told_runs.ESCAPE}"),), now_ms=told_runs.NOW + 13_000))
    ended = told_runs.lost_node(number=2, attempt=2, steps_lost=0)
    incidents = (told_runs.lost_node(), ended)
    screen.show(show(memory=told_runs.held(), now_ms=told_runs.NOW + 14_000, incidents=incidents))
    assert not any(CONTROL.search(line) for line in lines)
    assert_golden("cli/plain.txt", "\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("name", "memory"),
    [
        ("succeeded", told_runs.succeeded()),
        ("held", told_runs.held()),
        ("suspended", told_runs.memory(phase=Phase.SUSPENDED, attempt=None)),
    ],
)
def test_the_summary(name: str, memory: told_runs.Memory, runs: Path) -> None:
    incidents = [told_runs.lost_node(), told_runs.hostile_incident()]
    lines = summary(RunDirectory(runs / "hero"), "hero", memory, told_runs.progress(), incidents)
    assert not CONTROL.search("\n".join(lines).replace("\n", ""))
    assert_golden(f"cli/summary-{name}.txt", "\n".join(lines) + "\n")


def test_the_summary_is_folded_to_the_terminal(runs: Path) -> None:
    lines = summary(
        RunDirectory(runs / "hero"), "hero", told_runs.succeeded(), told_runs.progress(), [told_runs.lost_node()], 80
    )
    assert max(map(len, lines)) <= 80


@pytest.fixture
def elsewhere(runs: Path, tmp_path: Path) -> RunDirectory:
    """A run `hero` in another place, held after an incident whose sentence says what to type."""
    (tmp_path / "elsewhere").mkdir()
    advised = told_runs.lost_node(action="held; look at marin-sup logs hero, then: marin-sup resume hero")
    return told_runs.write_run(tmp_path / "elsewhere", told_runs.held(), incidents=[advised])


def test_whatever_the_core_says_to_type_finds_a_run_elsewhere(elsewhere: RunDirectory, call: Call) -> None:
    path, wanted = str(elsewhere.root), f"marin-sup logs {elsewhere.root}, then: marin-sup resume {elsewhere.root}"
    assert wanted in call("incidents", path, "-o", "wide").out
    assert wanted in call("logs", path, "--incident", "1").out
    advised = told_runs.lost_node(action="held; look at marin-sup logs hero, then: marin-sup resume hero")
    note = Note(Reason.NO_PROGRESS, advised.action)
    view = show(memory=told_runs.held(), notes=(note,), incidents=(advised,))
    lines = summary(elsewhere, "hero", view.memory, view.progress, view.incidents)
    PlainScreen("hero", elsewhere, lines.append).show(view)
    console = Console(width=1000, file=io.StringIO(), force_terminal=False)
    LiveScreen(core_spec(told_runs.manifest()), elsewhere, console).show(view)
    shown = "\n".join([*lines, console.file.getvalue()])  # type: ignore[attr-defined]
    assert re.findall(r"marin-sup [a-z]+ hero", shown) == []
    assert shown.count(wanted) == 4, "the way out and the incident of the summary, the note on either screen"


@pytest.mark.parametrize(
    ("called", "on_path", "typed"),
    [
        ("/home/me/clone/.venv/bin/marin-sup", None, ".venv/bin/marin-sup"),
        (".venv/bin/marin-sup", None, ".venv/bin/marin-sup"),
        ("/opt/bin/marin-sup", None, "/opt/bin/marin-sup"),
        ("/home/me/clone/.venv/bin/marin-sup", "/usr/bin/marin-sup", "marin-sup"),
        ("/home/me/clone/supervisor/__main__.py", None, "marin-sup"),
    ],
)
def test_a_suggested_command_is_one_that_the_shell_finds(called: str, on_path: str | None, typed: str) -> None:
    assert program_typed(called, on_path, Path("/home/me/clone")) == typed


def test_the_summary_names_a_run_elsewhere_by_its_path(runs: Path, tmp_path: Path) -> None:
    lines = summary(RunDirectory(tmp_path / "mine"), "hero", told_runs.held(), told_runs.progress(), [])
    assert f"  way out  look at marin-sup logs {tmp_path}/mine, then: marin-sup resume {tmp_path}/mine" in lines


STORY = [told_runs.lost_node(), told_runs.hostile_incident()]
SCREENS: dict[str, tuple[str, ...]] = {
    "status": ("status",),
    "status-wide": ("status", "-o", "wide"),
    "status-name": ("status", "-o", "name"),
    "status-yaml": ("status", "hero", "-o", "yaml"),
    "status-json": ("status", "hero", "-o", "json"),
    "status-hero": ("status", "hero"),
    "status-held": ("status", "held"),
    "status-done": ("status", "done"),
    "explain": ("explain", "hero"),
    "incidents": ("incidents", "hero"),
    "incidents-wide": ("incidents", "hero", "-o", "wide"),
    "incidents-json": ("incidents", "hero", "-o", "json"),
    "incidents-yaml": ("incidents", "hero", "-o", "yaml"),
    "logs": ("logs", "hero"),
    "logs-rank": ("logs", "hero", "--rank", "1"),
    "logs-incident": ("logs", "hero", "--incident", "i0001"),
    "logs-incident-rank": ("logs", "hero", "--incident", "1", "--rank", "2", "--tail", "1"),
}


@pytest.fixture
def told(runs: Path) -> RunDirectory:
    """Three runs: `hero` trains, `held` is held, `done` has succeeded."""
    hero = told_runs.write_run(runs, told_runs.memory(), incidents=STORY, decisions=[told_runs.decided()])
    told_runs.write_run(runs, told_runs.held(), name="held", updated_ms=told_runs.NOW - 3_600_000)
    told_runs.write_run(runs, told_runs.succeeded(), name="done")
    told_runs.write_output(hero, 1, 0, "r0n0", b"old\n")
    told_runs.write_output(hero, 2, 0, "r0n0", b"step 1\n\x1b[2Jstep 2\x00\n")
    told_runs.write_output(hero, 2, 1, "r0n2", "käse \u202e\r\nunfinished".encode())
    return hero


@pytest.mark.parametrize("name", SCREENS)
def test_a_command(name: str, told: RunDirectory, call: Call) -> None:
    said = call(*SCREENS[name])
    assert (said.code, said.err) == (ExitCode.OK, "")
    assert not CONTROL.search(said.out)
    assert_golden(f"cli/{name}.txt", said.out)


def test_a_supervisor_that_lives_is_told(told: RunDirectory, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    with claim(told):
        page = call("status", "hero").out
        rows = call("status").out
    assert re.search(r"^Supervisor: +alive, process [0-9]+$", page, re.MULTILINE)
    assert "unwatched" not in rows.split("hero", 1)[1].splitlines()[0]


def test_a_run_whose_workers_live_on_trains_unwatched(
    told: RunDirectory, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor.cli.run_state.living_workers", lambda directory: ["r0n0"])
    page = call("status", "hero").out
    assert re.search(r"^Phase: +Running\(unwatched\)$", page, re.MULTILINE)
    assert "no supervisor is alive; what is shown is 2s old; to continue: marin-sup resume hero" in page


def test_a_run_that_was_killed_says_where_it_goes_on(runs: Path) -> None:
    lines = summary(RunDirectory(runs / "hero"), "hero", told_runs.memory(), told_runs.progress(), [])
    assert lines[0] == (
        "hero was stopped by a second interrupt at step 83 of 160; the newest checkpoint is step 80; "
        "marin-sup resume hero goes on from there"
    )


def test_ranks_that_say_nothing_of_an_incident_say_why(told: RunDirectory, call: Call) -> None:
    journal = Journal(told.journal)
    placed = {"number": 1, "nodes": ["r0n0", "r0n1", "r1n0", "r1n1"], "layout": [2, 2, 1], "resume": None}
    silent = {**told_runs.exits()[0], "rank": 3, "node": "r1n1", "tail": ""}
    long = {**told_runs.exits()[0], "tail": "".join(f"line {number}\n" for number in range(40))}
    journal.append({"kind": "attempt", "t": told_runs.NOW, "attempt": placed}, silent, long)
    journal.close()
    path = told_runs.write_output(told, 1, 1, "r0n1", b"step 46\n").relative_to(told.root)
    said = call("logs", "hero", "--incident", "1").out
    assert f"rank 1 on r0n1 was lost with its node; its log: runs/hero/{path}\n" in said
    assert "rank 3 on r1n1 exited with 75\n  (it wrote nothing)\n" in said
    assert [line for line in said.splitlines() if line.startswith("  line")] == [f"  line {n}" for n in range(25, 40)]
    refused = call("logs", "hero", "--incident", "1", "--rank", "9")
    assert (refused.code, refused.err) == (
        ExitCode.NOT_FOUND,
        "marin-sup: attempt 1 has no rank 9; there are 0 to 3\n",
    )


def test_a_rank_that_is_not_there_is_answered_with_those_of_that_attempt(told: RunDirectory, call: Call) -> None:
    said = call("logs", "hero", "--attempt", "1", "--rank", "1")
    assert said.err == "marin-sup: no output of attempt 1 and rank 1; there are attempts 1 to 2, and of 1 ranks 0\n"


def test_the_newest_telling_decision_is_explained_not_a_routine_one(
    runs: Path, call: Call, routine: Callable[[], told_runs.Decided]
) -> None:
    told_runs.write_run(runs, told_runs.memory(), decisions=[told_runs.decided(), routine()])
    assert "NodeLost: the worker on node r0n1 is gone" in call("explain", "hero").out


def rest(memory: told_runs.Memory) -> told_runs.Decided:
    """A pass that comes to rest: ranks have exited, workers stand by, and a hold is a note, too."""
    before = told_runs.decided()
    orders = tuple(SendOrder(node, WorkerOrder("idle", None)) for node in ("r0n0", "r1n0"))
    notes = (Note(memory.reason, f"held: {memory.message}" if memory.hold else memory.message),)
    decision = told_runs.Decision(memory, orders, notes, (memory.incident and (memory.incident,)) or (), None)
    return replace(before, decision=decision)


def test_a_finished_run_is_explained_without_its_workers(runs: Path, call: Call) -> None:
    told_runs.write_run(runs, told_runs.succeeded(), decisions=[rest(told_runs.succeeded())])
    said = call("explain", "hero").out
    assert "Completed: all steps are trained" in said
    assert said.endswith("Now\n  unchanged: Succeeded\n")
    assert "stand by" not in said
    assert "exited" not in said


def test_a_hold_is_explained_once(runs: Path, call: Call) -> None:
    verdict = replace(told_runs.lost_node().verdict, because=told_runs.held().message)  # type: ignore[type-var]
    held = told_runs.held(incident=told_runs.lost_node(verdict=verdict, outcome=Outcome.HELD))
    told_runs.write_run(runs, held, decisions=[rest(held)])
    said = call("explain", "hero").out
    assert said.count(held.message) == 1
    assert said.count("then: marin-sup resume hero") == 1
    assert "stand by" not in said


@pytest.fixture
def routine() -> Callable[[], told_runs.Decided]:
    """A pass that only noticed a checkpoint."""

    def build() -> told_runs.Decided:
        memory = told_runs.memory()
        decision = told_runs.Decision(memory, (), (Note(Reason.CHECKPOINT_COMMITTED, "checkpoint a2:80"),), (), 1_000)
        return told_runs.Decided(builders.spec(), memory, told_runs.Observation(), told_runs.NOW, decision)

    return build
