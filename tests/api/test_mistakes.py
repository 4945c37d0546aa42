"""What a person reads when a manifest is wrong: one line per mistake, all of them at once."""

from __future__ import annotations

import json

import pytest

from supervisor.api.load import parse_text
from supervisor.api.mistakes import BadManifest
from supervisor.api.types import TrainingRun
from tests.api.manifests import HEAD, LAYOUT, TRAINER, manifest
from tests.golden_file import assert_golden

CASES = {
    "layout": manifest("layout: {racks: 2, minRacks: 3, rackz: 2, nodesPerRack: 0, ranksPerNode: 65}", TRAINER),
    "spares": manifest("layout: {racks: 2, nodesPerRack: 2, spares: {mode: hot, perRack: -1, per_rack: 2}}", TRAINER),
    "missing": manifest("suspend: false"),
    "missing-members": manifest("layout: {racks: 2}", "trainer: {env: [{value: x}]}"),
    "nothing-but-the-kind": HEAD,
    "wrong-types": manifest(
        "suspend: 1", "fleet: []", 'layout: {racks: "2", nodesPerRack: 2.5, ranksPerNode: true}', "trainer: train.py"
    ),
    "null": manifest("suspend:", "layout: {racks: null, nodesPerRack: 2}", "trainer: {module: a.b, args: null}"),
    "trainer": manifest(
        LAYOUT, "trainer: {module: a-b, command: [], layoutCheck: auto, args: [--steps, 100, 0.5, {}]}"
    ),
    "neither-module-nor-command": manifest(LAYOUT, "trainer: {args: [x]}"),
    "module-and-command": manifest(LAYOUT, "trainer: {module: a.b, command: [c]}"),
    "preload-with-command": manifest(LAYOUT, "trainer: {command: [c], preload: [jax]}"),
    "environment": manifest(
        LAYOUT,
        "trainer:\n  module: a.b\n  env:\n"
        "  - {name: MARIN_SUP_ATTEMPT, value: '1'}\n  - {name: JAX_COORDINATOR_ADDRESS, value: x}\n"
        "  - {name: JAX_PARTITION_INDEX}\n  - {name: 1A, value: x}\n  - {name: M, value: 5}\n  - {name: M, value: x}\n"
        '  - {name: ZERO, value: "a\\0b"}\n',
    ),
    "checkpoint": manifest(
        LAYOUT, TRAINER, "checkpoint: {directory: '', everySeconds: 0, everySteps: 5, keepNewest: 1}"
    ),
    "seconds-and-steps": manifest(LAYOUT, TRAINER, "checkpoint: {everySeconds: 60, everySteps: 5}"),
    "recovery": manifest(
        LAYOUT,
        TRAINER,
        "recovery: {startupDeadline: 45, workerLost: 100ms, stopGrace: 2d, nodeFaults: 3, noProgressLimit: 0,\n"
        "  budgets: {hardware: 30/24, data: 1/24h, Software: 1/24h}}",
    ),
    "schedule": manifest(LAYOUT, TRAINER, "schedule: {tokenBudget: 1e12, deadline: 2027-03-15, plannedMFU: 20}"),
    "requests": manifest(
        LAYOUT,
        TRAINER,
        "requests:\n- {id: a, stop: {}}\n- {id: a, resume: {fromstep: 5}}\n- {id: b}\n- {id: c, stop: {}, resume: {}}\n"
        "- {id: -d, rollback: {toStep: 5}}\n- resume\n- {id: e, resume: {fromStep: -1}}",
    ),
    "metadata": manifest(
        metadata="{name: Hero_1, namespace: '', labels: {'a b': x, ok: 'not ok!'}, annotations: {a: 1}, nmae: x}"
    ),
    "long-name": manifest(metadata="{name: " + "a" * 53 + "}"),
    "snake-case": manifest("layout: {racks: 2, nodesPerRack: 2, min_racks: 1}", TRAINER),
    "label-keys": manifest(metadata="{name: hero, labels: {" + "a" * 64 + ": x}}").replace(
        "spec:", "spec:\n  fleet:\n    nodeSelector: {Example.com/rack: x}"
    ),
    "fields-in-the-wrong-place": manifest(LAYOUT, TRAINER, "racks: 4", "everySteps: 5", "Suspend: true", "zzz: 1"),
    "yes-and-no": manifest(LAYOUT, "trainer: {module: a.b, args: [on, No, y, 'off', true]}", "suspend: yes"),
    "odd-numbers": manifest(
        "layout: {racks: 010, nodesPerRack: 0x2, ranksPerNode: 1_0, spares: {perRack: 0o7}}",
        "trainer: {module: a.b, args: [.5, 5., .inf, 0b1, 1e999, 08]}",
    ),
    "base-sixty": manifest(LAYOUT, TRAINER, "recovery: {startupDeadline: 1:30, stopGrace: '1:30'}"),
    "twice": manifest(LAYOUT, LAYOUT, "trainer:\n  module: a.b\n  module: c.d", "suspend: on", "suspend: true"),
    "odd-keys": manifest(
        LAYOUT, TRAINER, "fleet:\n  nodeSelector:\n    on: x\n    5: x\n    [a]: x\n    <<: {a: b}\n    ? \n    : x"
    ),
    "tags": manifest(LAYOUT, "trainer: {module: !!python/name:os.system a, args: [!!int '5', !!str 5, !!int x, !x y]}"),
    "control-characters": manifest(LAYOUT, 'trainer: {module: "a\\e[31m\\nb\\u202e\\\\", "arg\\e]0;x\\as": []}'),
    "half-a-surrogate-pair": manifest(LAYOUT, 'trainer: {module: a.b, args: ["\\ud800"]}'),
    "long-values": manifest(LAYOUT, "trainer: {module: '" + "a " * 5000 + "', " + "b" * 900 + ": 1}"),
    "huge-number": manifest("layout: {racks: 9999999999999999999999, nodesPerRack: 1000000000000000000}", TRAINER),
    "another-kind": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {replicas: 3}\n",
    "a-typo-in-the-kind": manifest().replace("TrainingRun", "Trainingrun"),
    "an-older-version": manifest().replace("v1alpha1", "v1alpha0"),
    "a-list": "- a\n- b\n",
    "text": "hello\n",
    "empty": "",
    "only-comments": "# nothing\n\n",
    "two-documents": manifest() + "---\n" + manifest(),
    "unclosed-list": manifest(LAYOUT, "trainer: {module: a.b, args: [x}"),
    "tab": manifest(LAYOUT, "trainer:\n\tmodule: a.b"),
    "colon": HEAD + "metadata: name: hero\n",
    "unknown-alias": manifest(LAYOUT, "trainer: *missing"),
    "an-alias-in-itself": manifest(LAYOUT, "trainer: &a {args: [*a]}"),
    "nested-too-deep": "[" * 5000,
    "too-many-aliases": "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    "a-control-character-in-the-text": manifest() + "# \x07\n",
}


@pytest.mark.parametrize("name", CASES)
def test_every_mistake_is_told_in_a_line_of_its_own(name: str) -> None:
    with pytest.raises(BadManifest) as bad:
        parse_text(CASES[name])
    text = "\n".join(bad.value.lines()) + "\n"
    assert_golden(f"api/{name}.txt", text)
    assert "pydantic" not in text
    assert "Input should" not in text
    assert all(line.isprintable() and len(line) < 500 for line in text.splitlines())


def test_what_the_issue_promises_to_say_about_racks_is_said() -> None:
    with pytest.raises(BadManifest) as bad:
        parse_text(manifest("layout: {racks: 2, minRacks: 3, rackz: 4, nodesPerRack: 1}", TRAINER))
    assert bad.value.lines() == [
        "spec.layout.minRacks: found 3, allowed at most racks (2)",
        "spec.layout.rackz: unknown field; did you mean racks?",
    ]


def test_mistakes_come_in_the_order_of_the_file_and_know_their_lines() -> None:
    with pytest.raises(BadManifest) as bad:
        parse_text(manifest("suspend: on", "layout: {racks: 0, nodesPerRack: 1}", "trainer: {}", "zzz: 1"))
    assert [(mistake.at[-1], mistake.line) for mistake in bad.value.mistakes] == [
        ("suspend", 5),
        ("racks", 6),
        ("trainer", 7),
        ("zzz", 8),
    ]


def test_a_flood_of_mistakes_is_cut_and_counted() -> None:
    with pytest.raises(BadManifest) as bad:
        parse_text(manifest(LAYOUT, TRAINER, *(f"field{i}: 1" for i in range(300))))
    assert len(bad.value.lines()) == 101
    assert bad.value.lines()[-1] == "... and 200 more"


def test_a_rule_that_python_code_breaks_is_refused_with_the_same_words() -> None:
    good = parse_text(manifest()).model_dump(mode="json", by_alias=True)
    good["spec"]["layout"]["minRacks"] = 3
    with pytest.raises(ValueError, match=r"found 3, allowed at most racks \(2\)"):
        TrainingRun.model_validate_json(json.dumps(good))
