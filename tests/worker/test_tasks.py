"""Tasks by sync: done once per id, an error is a result, and the worker lives on."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

from supervisor.core.lineage import Ancestor, Candidate, candidates
from supervisor.core.observation import Checkpoint, StepState, Survey, SurveyedStep
from supervisor.wire.messages import TaskOrder
from supervisor.worker.collect import collect
from supervisor.worker.set_aside import set_aside
from supervisor.worker.survey import survey
from tests.worker.bench import NODE, Bench, eventually, gang, marked, trainer
from tests.worker.checkpoint_tree import make_step


def test_a_survey_arrives_by_sync_is_done_once_and_forgotten_when_no_longer_asked_for(
    bench: Bench, tmp_path: Path
) -> None:
    root = tmp_path / "checkpoints"
    make_step(root, 1, 20)
    make_step(root, 3, 40, parent="1:20", tokens=99)
    (root / "a0004").mkdir()
    asked = TaskOrder("s1", "survey", {"root": str(root)})
    first = bench.worker()
    bench.order(tasks=(asked,))
    result = bench.result("s1")
    assert result.ok
    assert result.result["attempts"] == [1, 3, 4]
    assert [(s["attempt"], s["step"], s["state"], s["parent"], s["tokens"]) for s in result.result["steps"]] == [
        (1, 20, "verified", None, 10),
        (3, 40, "verified", [1, 20], 99),
    ]
    make_step(root, 3, 60)
    first.kill()
    first.wait()
    bench.worker()
    assert bench.result("s1") == result, "a restarted worker gives the same answer to the same question"
    bench.order()
    eventually(lambda: not bench.hub.report(NODE).results, "the result forgotten")
    bench.order(tasks=(TaskOrder("s2", "survey", {"root": str(root)}),))
    assert len(bench.result("s2").result["steps"]) == 3


def test_a_worker_whose_folder_was_removed_still_does_its_tasks(bench: Bench, tmp_path: Path) -> None:
    make_step(tmp_path / "checkpoints", 1, 20)
    worker = bench.worker()
    bench.order(tasks=(TaskOrder("s1", "survey", {"root": str(tmp_path / "checkpoints")}),))
    bench.result("s1")
    (folder,) = tmp_path.rglob("tasks")
    shutil.rmtree(folder)
    bench.order(tasks=(TaskOrder("s2", "survey", {"root": str(tmp_path / "checkpoints")}),))
    assert bench.result("s2").ok
    assert worker.poll() is None


def test_every_bad_task_is_a_result_with_a_sentence(bench: Bench, tmp_path: Path) -> None:
    closed = tmp_path / "a-file"
    closed.write_text("")
    bench.worker()
    asked = {
        "unknown": TaskOrder("unknown", "reboot", {}),
        "no root": TaskOrder("no root", "survey", {}),
        "relative": TaskOrder("relative", "collect", {"root": "here", "keep": [], "current": 1}),
        "climbing": TaskOrder("climbing", "survey", {"root": "/tmp/../etc"}),
        "keep": TaskOrder("keep", "collect", {"root": "/nowhere", "keep": "all", "current": 1}),
        "a file": TaskOrder("a file", "survey", {"root": str(closed)}),
        "no trainer": TaskOrder("no trainer", "check", {"layouts": [{}]}),
    }
    bench.order(tasks=tuple(asked.values()))
    errors = {name: bench.result(name).error for name in asked}
    assert not any(bench.result(name).ok for name in asked)
    assert "knows the tasks check, collect, evidence, set-aside, survey" in errors["unknown"]
    assert "absolute path" in errors["no root"]
    assert "absolute path" in errors["relative"]
    assert "without .." in errors["climbing"]
    assert "[attempt, step]" in errors["keep"]
    assert "a-file" in errors["a file"]
    assert "trainer" in errors["no trainer"]


def test_tasks_do_not_disturb_ranks_and_end_when_no_longer_wanted(bench: Bench) -> None:
    bench.worker()
    runs = trainer("emit", '{"event":"phase","phase":"train"}', "hang")
    check = {"trainer": {"module": "tests.worker.fake_trainer", "args": ["child", "hang"]}, "layouts": [{}]}
    bench.order(gang(1, runs), tasks=(TaskOrder("c", "check", check),))
    pid = bench.until_running().pid
    eventually(lambda: len(marked(bench.workdir)) == 4, "the rank, the task, its trainer, the trainer's child")
    bench.order(gang(1, runs))
    eventually(lambda: marked(bench.workdir) == [pid], "the rank alone")


def test_a_task_whose_process_is_killed_is_done_again_but_not_for_ever(bench: Bench) -> None:
    bench.worker()
    check = {"trainer": {"module": "tests.worker.fake_trainer", "args": ["hang"]}, "layouts": [{}]}
    bench.order(tasks=(TaskOrder("c", "check", check),))

    def task() -> int | None:
        return next((pid for pid in marked(bench.workdir) if b"supervisor.worker.task" in command_line(pid)), None)

    seen = set()
    for _ in range(3):
        pid = eventually(lambda: (found := task()) and found not in seen and found, "the task (again)")
        seen.add(pid)
        os.kill(pid, signal.SIGKILL)
    result = bench.result("c")
    assert not result.ok
    assert "signal 9" in result.error


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_missing_tree_is_an_empty_one(tmp_path: Path) -> None:
    assert survey({"root": str(tmp_path / "none")}) == {"attempts": [], "steps": []}
    assert collect({"root": str(tmp_path / "none"), "keep": [], "current": 1}) == {"removed": []}


def test_a_survey_sees_only_what_is_an_attempt_and_a_step(tmp_path: Path) -> None:
    make_step(tmp_path, 12, 5)
    unfinished = make_step(tmp_path, 12, 7)
    (unfinished / "manifest.json").unlink()
    for name in ("a12", "a0000", "a00013", "b0001", "a0012/05", "a0012/8.orbax-checkpoint-tmp", "a0012/x"):
        (tmp_path / name).mkdir(parents=True)
    os.symlink(tmp_path / "a0012", tmp_path / "a0099")
    os.symlink(tmp_path / "a0012" / "5", tmp_path / "a0012" / "9")
    found = survey({"root": str(tmp_path)})
    assert found["attempts"] == [12]
    assert [(s["step"], s["state"]) for s in found["steps"]] == [(5, "verified"), (7, "unfinished")]


def test_collection_deletes_what_nothing_descends_from_and_nothing_else(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for attempt, step in ((1, 10), (1, 20), (2, 30), (2, 40), (2, 50), (3, 60)):
        make_step(root, attempt, step)
    half_saved_before = make_step(root, 1, 30)
    (half_saved_before / "manifest.json").unlink()
    saving_now = make_step(root, 2, 35)
    (saving_now / "manifest.json").unlink()
    (root / "a0001" / "40.orbax-checkpoint-tmp-1").mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    os.symlink(outside, root / "a0001" / "70")
    os.symlink(outside, root / "a0001" / "10" / "link")

    removed = collect({"root": str(root), "keep": [[1, 20], [2, 40]], "current": 2})["removed"]
    assert removed == [[1, 10], [1, 30], [2, 30]]
    left = sorted(str(path.relative_to(root)) for path in root.glob("a*/*"))
    # 2/35 is being saved, 2/50 was committed after the order was written, attempt 3 is newer than we know
    assert left == ["a0001/20", "a0001/70", "a0002/35", "a0002/40", "a0002/50", "a0003/60"]
    assert (outside / "precious").exists()


def test_what_a_trainer_without_manifests_said_it_committed_is_found_after_a_collection(tmp_path: Path) -> None:
    for attempt, step in ((1, 10), (1, 20), (1, 30), (2, 25), (2, 30)):
        (make_step(tmp_path, attempt, step) / "manifest.json").unlink()
    assert collect({"root": str(tmp_path), "keep": [[1, 20], [2, 25]], "current": 2})["removed"] == [[1, 10], [1, 30]]
    steps = survey({"root": str(tmp_path)})["steps"]
    assert {s["state"] for s in steps} == {"unfinished"}
    seen = Survey("s", tuple(SurveyedStep(s["attempt"], s["step"], StepState(s["state"])) for s in steps))
    lineage = (Ancestor(1, None), Ancestor(2, Checkpoint(1, 20)))
    said = (Candidate(Checkpoint(1, 20), False), Candidate(Checkpoint(2, 25), False))
    assert candidates(lineage, seen, said, ()) == tuple(reversed(said)), "2/30 may be half saved"


def test_a_collection_that_was_cut_short_is_finished_by_the_next_and_seen_by_no_survey(tmp_path: Path) -> None:
    for step in (10, 20, 30):
        make_step(tmp_path, 1, step)
    os.rename(tmp_path / "a0001/10", tmp_path / "a0001/10.removing")
    (tmp_path / "a0001/10.removing/manifest.json").unlink()
    assert [s["step"] for s in survey({"root": str(tmp_path)})["steps"]] == [20, 30]
    make_step(tmp_path, 1, 10)
    saving_now = tmp_path / "a0001" / "40.orbax-checkpoint-tmp"
    saving_now.mkdir()
    assert collect({"root": str(tmp_path), "keep": [[1, 30]], "current": 1})["removed"] == [[1, 10], [1, 20]]
    assert sorted(path.name for path in (tmp_path / "a0001").iterdir()) == ["30", saving_now.name]


def test_a_damaged_step_is_set_aside_and_kept(tmp_path: Path) -> None:
    make_step(tmp_path, 2, 40)
    asked = {"root": str(tmp_path), "attempt": 2, "step": 40}
    moved = set_aside(asked)["moved_to"]
    assert Path(moved, "manifest.json").exists()
    assert survey({"root": str(tmp_path)})["steps"] == []
    assert set_aside(asked) == {"moved_to": None}, "asked twice, done once"
    make_step(tmp_path, 2, 40)
    assert set_aside(asked)["moved_to"] == moved + ".1"
