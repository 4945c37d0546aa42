"""Exit codes, bad input, damage, and requests."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
import pytest

from supervisor.cli import app, run_state
from supervisor.cli.exit_codes import MEANINGS, ExitCode
from supervisor.local.rundir import RunDirectory, claim
from tests.api.manifests import manifest
from tests.cli import told_runs
from tests.cli.conftest import Call, Said


@pytest.mark.parametrize("name", app.COMMANDS)
def test_the_list_of_commands_says_what_each_command_says_of_itself(name: str, call: Call) -> None:
    said = call(name, "--help")
    assert said.code == ExitCode.OK
    assert f"Usage: marin-sup {name}" in said.out
    assert len(app.COMMANDS[name][1]) <= 62  # one line of help at 80 columns
    assert name in call("--help").out


def test_help_lists_every_exit_code(call: Call) -> None:
    text = call("--help").out
    for code, meaning in MEANINGS.items():
        assert f"{int(code)}" in text
        assert meaning in text


@pytest.mark.parametrize(
    "arguments",
    [
        ("status", "nix"),
        ("explain", "nix"),
        ("incidents", "nix"),
        ("logs", "nix"),
        ("checkpoint", "nix"),
        ("stop", "nix"),
        ("resume", "nix"),
        ("chaos", "nix", "kill-node", "r0n1"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_an_unknown_run_is_said_in_one_sentence_with_what_there_is(
    arguments: tuple[str, ...], runs: Path, call: Call
) -> None:
    told_runs.write_run(runs, told_runs.memory())
    said = call(*arguments)
    assert (said.code, said.out) == (ExitCode.NOT_FOUND, "")
    assert said.err == "marin-sup: no run nix; in runs there are: hero\n"


def test_without_any_run_the_way_to_start_one_is_said(call: Call) -> None:
    assert (
        call("status", "nix").err == "marin-sup: no run nix; there are none in runs (start one: marin-sup run FILE)\n"
    )
    empty = call("status")
    assert (empty.code, empty.out) == (ExitCode.OK, "")
    assert empty.err == "no runs in runs; start one: marin-sup run FILE\n"


def test_a_run_is_found_by_name_by_path_and_below_another_root(
    runs: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = told_runs.write_run(runs, told_runs.memory())
    page = call("status", "hero").out
    assert call("status", "runs/hero").out == page
    assert "hero" in call("status", str(directory.root.resolve())).out
    monkeypatch.chdir(directory.root)
    assert f"Directory:   {directory.root.resolve()}" in call("status", ".").out
    monkeypatch.setenv("MARIN_SUP_RUNS", str(tmp_path / "elsewhere"))
    assert call("status", "hero").code == ExitCode.NOT_FOUND
    told_runs.write_run(tmp_path / "elsewhere", told_runs.memory(), name="other")
    assert "other" in call("status").out


@pytest.mark.parametrize(
    "name", ["..", ".", "", "\x1b[31mx", "a\nb", "x" * 5000, "a\0b"], ids=lambda name: repr(name[:8])
)
def test_an_odd_name_of_a_run_is_refused_and_shown_harmlessly(name: str, runs: Path, call: Call) -> None:
    told_runs.write_run(runs, told_runs.memory())
    said = call("status", name)
    assert said.code == ExitCode.NOT_FOUND
    assert "\x1b" not in said.err
    assert len(said.err) < 300


DAMAGES: dict[str, bytes] = {
    "empty": b"",
    "cut": b'{"apiVersion": "supervisor.marin.comm',
    "a list": b"[]",
    "no status": b'{"metadata": {}}',
    "garbage": bytes(range(256)),
    "too deep": b"[" * 100_000,
    "wrong kinds": b'{"metadata": 5, "spec": [], "status": {"phase": [], "step": "x", "loss": {}, "nodes": [1], '
    b'"conditions": {}, "ledger": {"train": "x"}, "layout": 3, "requests": [null], "startedAt": 7}}',
    "beyond numbers": b'{"status": {"phase": "Running", "step": 1e999, "loss": NaN, "mfu": -Infinity, "tokens": 1}}',
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("arguments", [("status",), ("status", "-o", "wide"), ("status", "hero")], ids=str)
def test_a_damaged_status_is_shown_as_far_as_it_goes(
    damage: str, arguments: tuple[str, ...], runs: Path, call: Call
) -> None:
    directory = told_runs.write_run(runs, told_runs.memory())
    directory.status.write_bytes(DAMAGES[damage])
    said = call(*arguments)
    assert (said.code, said.err) == (ExitCode.OK, "")
    assert "hero" in said.out


def test_a_damaged_status_is_named_where_the_whole_object_is_wanted(runs: Path, call: Call) -> None:
    told_runs.write_run(runs, told_runs.memory()).status.write_bytes(b"{")
    said = call("status", "hero", "-o", "json")
    assert (said.code, said.out) == (ExitCode.NOT_FOUND, "")
    assert said.err == "marin-sup: runs/hero: its status.json is damaged\n"


def test_a_journal_with_a_cut_line_still_tells_what_is_whole(runs: Path, call: Call) -> None:
    directory = told_runs.write_run(runs, told_runs.memory(), incidents=[told_runs.lost_node()])
    whole = call("incidents", "hero").out
    with directory.journal.open("ab") as journal:
        journal.write(b'\xff\n{"kind": "incident", "incident": {"number": 9}}\n{"kind": "incident", "inci')
    assert call("incidents", "hero").out == whole


def test_a_decision_log_with_a_cut_line_explains_the_one_before(runs: Path, call: Call) -> None:
    directory = told_runs.write_run(runs, told_runs.memory(), decisions=[told_runs.decided()])
    with directory.decisions.open("ab") as log:
        log.write(b'{"spec": {"name": "hero"')
    assert "NodeLost" in call("explain", "hero").out
    record = json.loads(call("explain", "hero", "-o", "json").out)
    assert record["decision"]["notes"][0]["reason"] == "NodeLost"


def test_nothing_decided_yet_is_said(runs: Path, call: Call) -> None:
    told_runs.write_run(runs, told_runs.memory())
    said = call("explain", "hero")
    assert (said.code, said.err) == (ExitCode.NOT_FOUND, "marin-sup: nothing has been decided about hero yet\n")


def test_a_bad_manifest_gets_one_line_per_mistake(call: Call, tmp_path: Path) -> None:
    text = manifest("layout: {racks: 2, minRacks: 3, nodesPerRak: 2}", "trainer: {module: 7}", metadata="{name: Hero}")
    (tmp_path / "bad.yaml").write_text(text)
    said = call("run", "bad.yaml")
    assert (said.code, said.out) == (ExitCode.USAGE, "")
    first, *lines = said.err.splitlines()
    assert first == f"marin-sup: bad.yaml: {len(lines)} mistakes"
    for path in ("metadata.name", "spec.layout.nodesPerRak", "spec.trainer.module"):
        assert [line for line in lines if line.startswith(f"  {path}: ")], said.err
    assert not (tmp_path / "runs" / "hero").exists()


def test_a_slip_in_the_kind_hides_no_other_mistake(call: Call, tmp_path: Path) -> None:
    text = manifest("layout: {racks: 0, nodesPerRack: 2}", "trainer: {module: 7}").replace("TrainingRun", "TrainRun")
    (tmp_path / "bad.yaml").write_text(text)
    said = call("run", "bad.yaml")
    assert [line.split(": ")[0].strip() for line in said.err.splitlines()[1:]] == [
        "kind",
        "spec.layout.racks",
        "spec.trainer.module",
    ]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("run", "missing.yaml"), "no such file"),
        (("run", "good.yaml", "--fleet", "2by3"), "--fleet: found '2by3', allowed is RACKSxNODES, such as 2x3"),
        (("run", "good.yaml", "--fleet", "1x1"), "too small"),
        (("run", "good.yaml", "--chaos", "explode r0n1"), "found the verb 'explode'"),
        (("run", "good.yaml", "--data", "nowhere"), "nowhere"),
        (("run", "good.yaml", "--chaos", "kill-node r7n1"), "found the target r7n1, there are: r0n0, r0n1, r0n2, r1n0"),
        (("run", "good.yaml", "--chaos", "kill-rack r2 @step 5"), "found the target r2, there are: r0, r1"),
        (("run", "good.yaml", "--chaos", "fail-rank 4"), "found the target 4, there are: 0, 1, 2, 3"),
        (("run",), "Missing argument 'FILE'"),
        (("unknown",), "No such command 'unknown'"),
        (("status", "-o", "xml"), "'xml' is not one of"),
        (("chaos", "hero", "kill-node"), "allowed is VERB TARGET"),
        (("chaos", "hero", "kill-node", "r7n0"), "found the target r7n0, there are: r0n0, r0n1, r0n2, r1n0"),
        (("chaos", "hero", "kill-rack", "r7"), "found the target r7, there are: r0, r1"),
        (("chaos", "hero", "kill-rank", "4"), "found the target 4, there are: 0, 1, 2, 3"),
        (("checkpoint", "hero", "--timeout", "soon"), "allowed is a duration such as 60s"),
        (("resume", "hero", "--from-step", "-1"), "-1"),
        (("logs", "hero", "--incident", "1", "--follow"), "--incident goes with"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_mistake_in_the_command_line_exits_2(
    arguments: tuple[str, ...], sentence: str, runs: Path, call: Call, tmp_path: Path
) -> None:
    told_runs.write_run(runs, told_runs.memory())
    (tmp_path / "good.yaml").write_text(manifest("layout: {racks: 2, nodesPerRack: 2}", "trainer: {module: m}"))
    said = call(*arguments)
    assert (said.code, said.out) == (ExitCode.USAGE, "")
    assert sentence in said.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("checkpoint", "hero"), "no supervisor of hero is alive; take the run up first: marin-sup resume hero"),
        (("chaos", "hero", "kill-node", "r0n0"), "no supervisor of hero is alive"),
        (("stop", "hero"), "nothing of hero runs: no supervisor and no worker is alive"),
        (("logs", "hero", "--rank", "9"), "no rank of hero has written anything yet"),
        (("logs", "hero", "--incident", "i0007"), "no incident i0007 of hero; there are i0001"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_what_needs_somebody_to_answer_exits_3_when_nobody_does(
    arguments: tuple[str, ...], sentence: str, runs: Path, call: Call
) -> None:
    told_runs.write_run(runs, told_runs.memory(), incidents=[told_runs.lost_node()])
    said = call(*arguments)
    assert (said.code, said.out) == (ExitCode.NOT_FOUND, "")
    assert sentence in said.err


@pytest.mark.parametrize(
    ("order", "sentence"),
    [
        (("revive-node", "r0n0"), "r0n0 is not dead; nothing to do"),
        (("revive-rack", "r1"), "no node of r1 is dead; nothing to do"),
        (("revive-rack", "r0"), "ordered: revive-rack r0, for when the run is taken up: marin-sup resume hero"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_only_the_dead_are_revived(order: tuple[str, ...], sentence: str, runs: Path, call: Call) -> None:
    directory = told_runs.write_run(runs, told_runs.memory())  # r0n1 is dead
    said = call("chaos", "hero", *order)
    assert (said.code, said.out) == (ExitCode.OK, f"{sentence}\n")
    assert len(list(directory.chaos.glob("*.json"))) == sentence.startswith("ordered")


def test_a_run_in_use_by_a_living_supervisor_is_refused(runs: Path, call: Call, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(manifest("layout: {racks: 2, nodesPerRack: 2}", "trainer: {module: m}"))
    with claim(told_runs.write_run(runs, told_runs.memory())):
        said = call("run", "good.yaml")
    assert said.code == ExitCode.USAGE
    assert "a living supervisor" in said.err


def test_a_file_that_may_not_be_read_is_one_sentence(runs: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(directory: RunDirectory) -> run_state.RunState:
        raise PermissionError(13, "Permission denied", str(directory.status))

    monkeypatch.setattr("supervisor.cli.commands.status.read_run", refused)  # root may read everything
    told_runs.write_run(runs, told_runs.memory())
    said = call("status", "hero")
    assert (said.code, said.err) == (ExitCode.NOT_FOUND, "marin-sup: runs/hero/status.json: Permission denied\n")


@pytest.mark.parametrize(
    ("problem", "code", "sentence"),
    [
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, ""),
        (ZeroDivisionError("x"), ExitCode.INTERNAL, "a fault of marin-sup itself: ZeroDivisionError: x"),
    ],
    ids=["an interrupt", "a fault of ours"],
)
def test_nobody_sees_a_traceback(
    problem: BaseException, code: ExitCode, sentence: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> list[RunDirectory]:
        raise problem

    monkeypatch.setattr("supervisor.cli.commands.status.all_runs", fails)
    said: Said = call("status")
    assert said.code == code
    assert sentence in said.err
    assert "Traceback" not in said.err


def test_a_group_of_another_package_is_found_by_entry_point(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        name = "health"

        def load(self) -> click.Command:
            return click.Command("health", callback=lambda: click.echo("all nodes are well"), short_help="Check nodes.")

    monkeypatch.setattr("supervisor.cli.lazy_group._added", lambda: {"health": Entry()})
    assert call("health").out == "all nodes are well\n"
    assert "health      Check nodes." in call("--help").out


@pytest.mark.skipif(os.environ.get("NO_COLOR") is not None, reason="colours are off for this whole test run")
@pytest.mark.parametrize(("no_color", "coloured"), [(None, True), ("1", False)], ids=["wanted", "NO_COLOR"])
def test_colours_are_only_for_terminals_that_want_them(
    no_color: str | None, coloured: bool, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from supervisor.cli import table

    if no_color:
        monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert ("\x1b[" in table.paint_phases("hero  Running  5")) is coloured
