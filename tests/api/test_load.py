"""Files: what is read as a TrainingRun, and what is said of one that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from supervisor.api.load import MAX_BYTES, load_run, parse_text
from supervisor.api.mistakes import BadManifest
from tests.api.manifests import LAYOUT, TRAINER, manifest

PRINTED_BY_KUBECTL = manifest(
    LAYOUT,
    TRAINER,
    metadata="""
  name: hero
  namespace: default
  uid: 7c1f3f4e-0d5a-4c38-9c0e-1e3a8f1f5b5d
  resourceVersion: "123456"
  generation: 3
  creationTimestamp: "2026-12-01T16:40:00Z"
  finalizers: [supervisor.marin.community/ledger]
  ownerReferences: [{apiVersion: v1, kind: Sweep, name: s, uid: x, controller: true}]
  managedFields:
  - {manager: kubectl, operation: Apply, fieldsV1: {"f:spec": {"f:layout": {}}}, time: "2026-12-01T16:40:00Z"}""",
    rest="status: {phase: Running, step: 120, loss: 3.5, conditions: [{type: Accepted, status: 'True'}]}\n",
)


def failure(path: Path) -> str:
    with pytest.raises(BadManifest) as bad:
        load_run(path)
    assert len(bad.value.lines()) == 1
    return bad.value.lines()[0]


def test_a_small_manifest_gets_the_documented_defaults(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(manifest())
    spec = load_run(file).spec
    assert (spec.layout.racks, spec.layout.lowest_racks, spec.layout.ranks_per_node) == (2, 2, 1)
    assert (spec.layout.spares.mode, spec.layout.spares.per_rack, spec.fleet.gpus_per_node) == ("Hot", 0, 0)
    assert (spec.checkpoint.directory, spec.checkpoint.keep_newest, spec.checkpoint.verify) == ("checkpoints", 3, True)
    assert str(spec.recovery.startup_deadline) == "45m"
    assert str(spec.recovery.worker_lost) == "5s"
    assert str(spec.recovery.stop_grace) == "10s"
    assert [str(budget) for _, budget in spec.recovery.budgets] == ["30/24h", "5/24h", "5/24h", "10/24h", "2/24h"]
    assert (str(spec.recovery.node_faults), spec.recovery.no_progress_limit) == ("3/24h", 3)


def test_what_kubectl_prints_can_be_read_again() -> None:
    run = parse_text(PRINTED_BY_KUBECTL)
    assert run.metadata.generation == 3
    assert run.status is not None
    assert (run.status.phase, run.status.step) == ("Running", 120)


def test_the_manifest_of_the_design_is_read_but_for_what_comes_later() -> None:
    run = parse_text(
        manifest(
            "suspend: false",
            "fleet:",
            "  nodeSelector: {nvidia.com/gpu.product: NVIDIA-GB200}",
            "  rackLabel: ds.coreweave.com/nvlink.domain",
            "  gpusPerNode: 4",
            "layout: {racks: 11, minRacks: 8, nodesPerRack: 16, ranksPerNode: 4, spares: {mode: Hot, perRack: 2}}",
            "trainer: {module: training.train, args: [--config, /etc/run/hero.yaml], preload: [jax, orbax.checkpoint]}",
            "checkpoint: {directory: /ckpt/hero, everySeconds: 1800, keepEverySteps: 6000, verify: true}",
            "recovery: {startupDeadline: 45m, budgets: {hardware: 30/24h, config: 2/24h}, noProgressLimit: 3}",
            'schedule: {tokenBudget: 18000000000000, deadline: "2027-03-15T00:00:00Z", plannedMFU: 0.20}',
            "requests: [{id: a1, checkpointNow: {}}, {id: a3, resume: {}}]",
        )
    )
    assert run.spec.layout.lowest_racks == 8
    assert run.spec.schedule.planned_mfu == 0.2
    assert run.spec.fleet.rack_label == "ds.coreweave.com/nvlink.domain"


def test_anchors_and_aliases_may_save_typing() -> None:
    run = parse_text(manifest(LAYOUT, "trainer: {module: &m a.b, preload: [*m, jax]}"))
    assert run.spec.trainer.preload == ("a.b", "jax")


def test_json_is_read_as_well(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text(
        '{"apiVersion": "supervisor.marin.community/v1alpha1", "kind": "TrainingRun", "metadata": {"name": "hero"},\n'
        '    "spec": {"layout": {"racks": 1, "nodesPerRack": 1}, "trainer": {"command": ["a", "\\u00e9"]}}}'
    )
    assert load_run(file).spec.trainer.command == ("a", "é")


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + manifest().encode())
    assert load_run(file).metadata.name == "hero"


def test_a_missing_file_is_named_as_such(tmp_path: Path) -> None:
    assert failure(tmp_path / "none.yaml") == "no such file"


def test_a_directory_is_no_manifest(tmp_path: Path) -> None:
    assert failure(tmp_path) == "found a directory, allowed a file"


def test_a_file_that_cannot_be_reached_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert failure(tmp_path / "file" / "run.yaml") == "cannot be read: Not a directory"
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert failure(loop) == "cannot be read: Too many levels of symbolic links"
    assert failure(Path("a\0b")) == "cannot be read: embedded null byte"


def test_a_huge_file_is_refused_without_reading_it_all(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    with file.open("wb") as sparse:
        sparse.truncate(MAX_BYTES << 10)
    assert failure(file) == "found more than 1048576 bytes, allowed at most that (1 MiB)"


def test_a_binary_file_is_no_manifest(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_bytes(b"\x7fELF\x02\x01\x01\x00")
    assert failure(file) == "not a text file: found a zero byte at offset 7"
    file.write_bytes(b"name: caf\xe9\n")
    assert failure(file) == "not UTF-8 text: found the byte 0xe9 at offset 9"
