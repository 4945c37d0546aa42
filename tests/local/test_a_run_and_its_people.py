"""What people do to a run, from this terminal and from another: stop, resume, save, interrupt, kill, revive."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from supervisor.observe.decision_log import read_decisions, reproduces
from tests.local.run_process import RunProcess, manifest, running


def scripted(*arguments: str, nodes: int = 1, spares: int = 0) -> dict:
    trainer = {"module": "tests.local.scripted_trainer", "args": list(arguments)}
    layout = {"racks": 1, "minRacks": 1, "nodesPerRack": nodes, "ranksPerNode": 1, "spares": {"perRack": spares}}
    return manifest("scripted", trainer=trainer, layout=layout)


SLOW = ("--steps", "400", "--step-seconds", "0.02")


def nobody_is_left(run: RunProcess) -> bool:
    """No process works in the run's directory any more."""
    needle = str(run.directory).encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if needle in (folder / "cmdline").read_bytes():
                return False
        except OSError:
            continue
    return True


def resumed_from(run: RunProcess) -> list[str | None]:
    return [attempt["resume"] for attempt in run.attempts()]


def test_one_interrupt_saves_stops_and_leaves_nobody_behind(tmp_path: Path) -> None:
    with running(tmp_path, scripted(*SLOW)) as run:
        run.until(lambda: run.step() > 12, "it trains")
        assert run.process is not None
        os.kill(run.process.pid, signal.SIGINT)
        assert run.wait(30) == 0, run.story()
        stopped_at = run.step()
        saved = max(event["step"] for event in run.events("checkpoint"))
        assert saved == stopped_at, "the last step is saved"
        assert nobody_is_left(run)
        run.start()
        assert run.wait(60) == 0, run.story()
        assert resumed_from(run) == [None, f"1:{stopped_at}"], "no step is done twice"
        assert sorted(run.losses()) == list(range(1, 401))


def test_a_second_interrupt_kills_at_once(tmp_path: Path) -> None:
    with running(tmp_path, scripted(*SLOW, "--long-step", "8")) as run:
        run.until(lambda: run.step() == 7, "it trains, and the next step is too long to wait for")
        assert run.process is not None
        os.kill(run.process.pid, signal.SIGINT)
        run.until(lambda: "saves and stops" in run.screen.read_text(), "it waits for the end of the step to save")
        os.kill(run.process.pid, signal.SIGINT)
        assert run.wait(15) == 130, run.story()
        assert nobody_is_left(run)


def test_a_killed_supervisor_leaves_the_run_training_and_the_next_one_adopts_it(tmp_path: Path) -> None:
    with running(tmp_path, scripted(*SLOW)) as run:
        run.until(lambda: run.step() > 5, "it trains")
        run.kill_supervisor()
        (output,) = run.directory.glob("nodes/*/a0001/rank-*")
        (number,) = run.worker_pids().values()
        checkpoints = run.directory / "checkpoints"
        before = len(list(checkpoints.iterdir()))
        while len(list(checkpoints.iterdir())) < before + 3:  # it goes on saving; the test's timeout is the deadline
            assert Path(f"/proc/{number}").exists()
        run.start()
        assert run.wait(60) == 0, run.story()
        assert len(run.attempts()) == 1, "the attempt that lived was adopted"
        assert run.incidents() == []
        assert sorted(run.losses()) == list(range(1, 401)), "no event was lost while nobody listened"
        assert output.exists()
        assert nobody_is_left(run)


def test_stop_and_resume_from_another_terminal(tmp_path: Path) -> None:
    with running(tmp_path, scripted(*SLOW)) as run:
        run.until(lambda: run.step() > 21, "it trains")
        assert run.call("stop").returncode == 0
        assert run.wait(30) == 0, run.story()
        assert "Suspended" in run.reasons()
        back = run.call("resume", "--from-step", "10")
        assert back.returncode == 0, back.stdout + back.stderr
        assert resumed_from(run)[1] == "1:10"
        assert sorted(run.losses()) == list(range(1, 401))


def test_a_step_that_was_never_saved_is_refused_with_those_that_were(tmp_path: Path) -> None:
    with running(tmp_path, scripted(*SLOW)) as run:
        run.until(lambda: run.step() > 21, "it trains")
        run.call("stop")
        run.wait(30)
        refused = run.call("resume", "--from-step", "11")
        assert refused.returncode == 5
        assert "no restorable checkpoint of step 11" in refused.stdout + refused.stderr
        assert "20" in refused.stdout + refused.stderr


def test_a_checkpoint_on_request_is_committed_before_the_command_returns(tmp_path: Path) -> None:
    with running(tmp_path, scripted("--steps", "2000", "--step-seconds", "0.02", "--save-every", "100000")) as run:
        run.until(lambda: run.step() > 3, "it trains")
        done = run.call("checkpoint")
        assert done.returncode == 0, done.stdout + done.stderr
        (saved,) = run.events("checkpoint")
        assert f"a1:{saved['step']}" in done.stdout


def test_a_rank_that_raises_is_restarted_in_place(tmp_path: Path) -> None:
    with running(tmp_path, scripted(*SLOW)) as run:
        run.until(lambda: run.step() > 12, "it trains")
        assert run.call("chaos", "fail-rank", "0").returncode == 0
        assert run.wait(60) == 0, run.story()
        (incident,) = run.incidents()
        assert (incident["rung"], incident["outcome"]) == ("RestartInPlace", "recovered")
        assert "failed on request" in incident["verdict"]["because"]
        decisions = list(read_decisions(run.directory / "decisions.jsonl"))
        assert len(decisions) > 10
        assert all(reproduces(decided) for decided in decisions), "the log, replayed, decides the same"
        assert sorted(run.losses()) == list(range(1, 401))


def test_a_rank_that_hangs_is_noticed_by_its_steps_and_restarted(tmp_path: Path) -> None:
    hanging = scripted(*SLOW)
    limits = {"floor": "300ms", "ceiling": "2s"}
    hanging["spec"]["recovery"] = hanging["spec"].get("recovery", {}) | {"deadlines": {"step": limits}}
    with running(tmp_path, hanging) as run:
        run.until(lambda: run.step() > 30, "it trains, and has shown how long its steps are")
        assert run.call("chaos", "hang-rank", "0").returncode == 0
        assert run.wait(60) == 0, run.story()
        (incident,) = run.incidents()
        assert (incident["rung"], incident["outcome"]) == ("RestartInPlace", "recovered")
        assert "HangSuspected" in run.reasons(), "it is suspected before anything is done about it"
        assert incident["cost"]["detect"] > 300, "the silence is the cost of detection, in arrears"
        assert sorted(run.losses()) == list(range(1, 401))


def test_without_capacity_the_run_is_held_and_goes_on_once_the_node_is_revived(tmp_path: Path) -> None:
    with running(tmp_path, scripted(*SLOW), "--chaos", "kill-node r0n0 @step 12") as run:
        assert run.wait(60) == 5, run.story()
        assert "InsufficientCapacity" in run.reasons()
        assert "rack r0 has 0 of 1 nodes" in run.screen.read_text()
        assert nobody_is_left(run)
        assert run.call("chaos", "revive-node", "r0n0").returncode == 0
        run.start()
        assert run.wait(60) == 0, run.story()
        assert sorted(run.losses()) == list(range(1, 401))
        (incident,) = run.incidents()
        assert incident["outcome"] == "recovered"
