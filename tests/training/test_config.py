"""Mistakes in a configuration, the learning rate, and requests in the control file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from training.config import ConfigError, Optimizer, load_config
from training.contract import Contract, Plan, parse_contract
from training.control import Control, Requests
from training.loop import total_steps
from training.optimizer import learning_rate


@pytest.mark.parametrize("name", ["demo", "tiny"])
def test_the_named_configs_are_valid(name: str) -> None:
    assert load_config(name).tokens_per_step > 0


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.widht=3", "tiny: model.widht: no such field; did you mean 'width'?"),
        ("zzz=3", "tiny: zzz: no such field; known here: model, data"),
        ("model.width=wide", "model.width: found 'wide', allowed an integer of at least 1"),
        ("model.width=true", "model.width: found True, allowed an integer of at least 1"),
        ("optimizer.peak_rate=0", "optimizer.peak_rate: found 0, allowed a number above 0"),
        ("optimizer.peak_rate=.nan", "optimizer.peak_rate: found nan, allowed a number above 0"),
        ("optimizer.floor_fraction=2", "optimizer.floor_fraction: found 2, allowed a number from 0 to 1"),
        ("dispatch.kind=all_to_al", "found 'all_to_al', allowed all_to_all or dense; did you mean 'all_to_all'?"),
        ("device.peak=guess", "device.peak: found 'guess', allowed a number above 0 or measure or null"),
        ("model=7", "model: found 7, allowed a mapping with width, layers"),
        ("model.key_value_heads=3", "model.key_value_heads: found 3, allowed a divisor of model.heads (2)"),
        ("model.experts_per_token=9", "model.experts_per_token: found 9, allowed up to model.experts (4)"),
        ("model.head_width=7", "model.head_width: found 7, allowed an even number"),
        ("steps", "--set steps: allowed SECTION.KEY=VALUE"),
        ("steps.more=1", "--set steps.more=1: steps is not a section"),
    ],
)
def test_a_mistake_is_named_with_what_is_allowed(setting: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load_config("tiny", (setting,))
    assert message in str(raised.value)


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("steps: -1\nmodel: {width: x}\ndata: {}\noptimizer: {peak_rate: 1, warmup: 3}\n")
    with pytest.raises(ConfigError) as raised:
        load_config(str(tmp_path / "bad.yaml"))
    lines = str(raised.value).splitlines()
    assert all("bad.yaml: " in line for line in lines)
    for field in (
        "steps",
        "model.width",
        "model.layers",
        "data.sequence",
        "optimizer.warmup",
        "optimizer.warmup_steps",
    ):
        assert sum(f"bad.yaml: {field}: " in line for line in lines) == 1, field


@pytest.mark.parametrize("content", ["a: [", "just text", "- a\n- b", "", "\x00"])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "bad.yaml").write_text(content)
    with pytest.raises(ConfigError, match="--config"):
        load_config(str(tmp_path / "bad.yaml"))


@pytest.mark.parametrize(
    ("step", "rate"), [(1, 0.1), (5, 0.5), (10, 1.0), (11, 0.991), (60, 0.55), (110, 0.1), (200, 0.1)]
)
def test_the_rate_warms_up_and_falls_in_a_line_to_its_floor(step: int, rate: float) -> None:
    optimizer = Optimizer(peak_rate=1.0, warmup_steps=10, floor_fraction=0.1)
    assert learning_rate(optimizer, step, 110) == pytest.approx(rate)


def test_without_warm_up_the_first_rate_is_the_peaks() -> None:
    assert learning_rate(Optimizer(peak_rate=1.0, warmup_steps=0), 1, 10**6) == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize(("budget", "steps"), [(None, 40), (256, 1), (1023, 3)])
def test_the_token_budget_sets_the_number_of_steps(budget: int | None, steps: int) -> None:
    assert total_steps(load_config("tiny"), Contract(plan=Plan(token_budget=budget))) == steps


def test_a_budget_below_one_step_is_refused() -> None:
    with pytest.raises(ConfigError, match="tokenBudget of 255 is less than one step of 256 tokens"):
        total_steps(load_config("tiny"), Contract(plan=Plan(token_budget=255)))


def supervised(folder: Path, **changes: str) -> dict[str, str]:
    (folder / "plan").write_text('{"version": 1, "run": "r", "amendment": 0}')
    good = {
        "MARIN_SUP_CONTRACT": "1",
        "JAX_COORDINATOR_ADDRESS": "localhost:1",
        "MARIN_SUP_NUM_PROCESSES": "4",
        "MARIN_SUP_PROCESS_ID": "3",
        "MARIN_SUP_ATTEMPT": "7",
        "MARIN_SUP_LAYOUT": '{"racks": 2, "nodesPerRack": 1, "ranksPerNode": 2}',
        "MARIN_SUP_PLAN": str(folder / "plan"),
        "MARIN_SUP_CONTROL": "/c",
        "MARIN_SUP_EVENTS": "/e",
        "MARIN_SUP_RESUME": "3:120",
        "MARIN_SUP_CHECKPOINTS": "/k",
    }
    return good | changes


def test_the_environment_becomes_a_contract(tmp_path: Path) -> None:
    contract = parse_contract(supervised(tmp_path))
    assert (contract.layout.racks, contract.layout.ranks_per_rack, contract.process_id) == (2, 2, 3)
    assert (contract.attempt, contract.resume, contract.cache) == (7, (3, 120), None)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("MARIN_SUP_CONTRACT", "2", "this trainer knows version 1"),
        ("MARIN_SUP_LAYOUT", '{"racks": 2}', "allowed exactly"),
        ("MARIN_SUP_LAYOUT", "[", "not JSON"),
        ("MARIN_SUP_LAYOUT", '{"racks": 0, "nodesPerRack": 1, "ranksPerNode": 2}', "MARIN_SUP_LAYOUT.racks: found '0'"),
        ("MARIN_SUP_NUM_PROCESSES", "5", "found 5, but MARIN_SUP_LAYOUT has 4 ranks"),
        ("MARIN_SUP_PROCESS_ID", "4", "found 4, allowed 0 to 3"),
        ("MARIN_SUP_PROCESS_ID", "-1", "found '-1'"),
        ("MARIN_SUP_RESUME", "3", "ATTEMPT:STEP"),
        ("MARIN_SUP_RESUME", "0:5", "ATTEMPT:STEP"),
        ("MARIN_SUP_EVENTS", "", "not set"),
        ("MARIN_SUP_PLAN", "/nowhere", "cannot read /nowhere"),
    ],
)
def test_a_broken_environment_is_refused_by_name(tmp_path: Path, variable: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_contract(supervised(tmp_path, **{variable: value}))
    assert variable in str(raised.value)
    assert message in str(raised.value)


def test_a_request_number_asks_once_and_a_bad_file_asks_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "control"
    control = Control(path)
    assert control.read() == Requests(), "no file yet"

    def write(content: str) -> None:
        path.with_suffix(".new").write_text(content)
        path.with_suffix(".new").replace(path)

    def request(save: int, stop: bool = False, fail: int = 0) -> str:
        return json.dumps({"version": 1, "save": save, "stop": stop, "fail": fail, "unknown": "member"})

    write(request(0))
    assert control.read() == Requests()
    write(request(2))
    assert control.read() == Requests(save=True)
    assert control.read() == Requests()
    write("{")
    assert control.read() == Requests()
    assert "ignored" in capsys.readouterr().err
    write(request(1, stop=True, fail=1))
    assert control.read() == Requests(stop=True, fail=True)
    assert control.read() == Requests(stop=True), "stop stays"
