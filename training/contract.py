"""What a rank is told through its environment, parsed once into values that cannot be wrong (trainer contract,
version 1).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.config import ConfigError

PLAN_BYTES_MAX = 1 << 20
SKIPS_MAX = 1000
_INT_MAX = 2**62


@dataclass(frozen=True, slots=True)
class Layout:
    """Racks x nodes per rack x ranks per node. Ranks are numbered rack after rack."""

    racks: int
    nodes_per_rack: int
    ranks_per_node: int

    @property
    def ranks_per_rack(self) -> int:
        return self.nodes_per_rack * self.ranks_per_node

    @property
    def ranks(self) -> int:
        return self.racks * self.ranks_per_rack

    def as_event(self) -> dict[str, int]:
        return {"racks": self.racks, "nodesPerRack": self.nodes_per_rack, "ranksPerNode": self.ranks_per_node}


@dataclass(frozen=True, slots=True)
class Plan:
    """What the run is to do; None leaves a choice to the trainer's own configuration."""

    token_budget: int | None = None
    checkpoint_every_steps: int | None = None
    checkpoint_every_seconds: float | None = None
    skipped_batches: tuple[tuple[int, int], ...] = ()  # (after step, count), ascending by step

    def batch_after(self, step: int) -> int:
        """The index of the batch that the step after `step` trains on: each batch belongs to one step or is passed
        over, and none is read twice.
        """
        return step + sum(count for after, count in self.skipped_batches if after <= step)


@dataclass(frozen=True, slots=True)
class Contract:
    """One rank's place in one attempt. `coordinator` is None for a process that trains alone."""

    layout: Layout = Layout(1, 1, 1)
    process_id: int = 0
    attempt: int = 1
    coordinator: str | None = None
    plan: Plan = Plan()
    control: Path | None = None
    events: Path | None = None
    resume: tuple[int, int] | None = None  # (attempt, step) of the checkpoint to restore
    checkpoints: Path | None = None
    cache: Path | None = None

    @property
    def processes(self) -> int:
        return self.layout.ranks


def parse_layout(text: str, where: str) -> Layout:
    """Parse one layout's JSON. Raises ConfigError, naming `where`."""
    found = _json_object(text, where)
    allowed = ("racks", "nodesPerRack", "ranksPerNode")
    if set(found) != set(allowed):
        raise ConfigError(f"{where}: found members {sorted(found)}, allowed exactly {list(allowed)}")
    return Layout(*(_integer(found[name], f"{where}.{name}", 1) for name in allowed))


def parse_contract(environment: Mapping[str, str]) -> Contract:
    """Parse the contract's variables; without MARIN_SUP_CONTRACT the process trains alone. Raises ConfigError."""
    version = environment.get("MARIN_SUP_CONTRACT")
    if version is None:
        return _unsupervised(environment)
    if version != "1":
        raise ConfigError(f"MARIN_SUP_CONTRACT: found {version[:40]!r}, this trainer knows version 1")
    layout = parse_layout(_needed(environment, "MARIN_SUP_LAYOUT"), "MARIN_SUP_LAYOUT")
    processes = _number(environment, "MARIN_SUP_NUM_PROCESSES", 1)
    if processes != layout.ranks:
        raise ConfigError(f"MARIN_SUP_NUM_PROCESSES: found {processes}, but MARIN_SUP_LAYOUT has {layout.ranks} ranks")
    process_id = _number(environment, "MARIN_SUP_PROCESS_ID", 0)
    if process_id >= processes:
        raise ConfigError(f"MARIN_SUP_PROCESS_ID: found {process_id}, allowed 0 to {processes - 1}")
    return Contract(
        layout=layout,
        process_id=process_id,
        attempt=_number(environment, "MARIN_SUP_ATTEMPT", 1),
        coordinator=_needed(environment, "JAX_COORDINATOR_ADDRESS"),
        plan=read_plan(Path(_needed(environment, "MARIN_SUP_PLAN"))),
        control=Path(_needed(environment, "MARIN_SUP_CONTROL")),
        events=Path(_needed(environment, "MARIN_SUP_EVENTS")),
        resume=parse_resume(_needed(environment, "MARIN_SUP_RESUME")),
        checkpoints=Path(_needed(environment, "MARIN_SUP_CHECKPOINTS")),
        cache=_path(environment, "MARIN_SUP_CACHE"),
    )


def _unsupervised(environment: Mapping[str, str]) -> Contract:
    """One process; a folder for checkpoints, a cache and a file for events may still be named."""
    return Contract(
        events=_path(environment, "MARIN_SUP_EVENTS"),
        checkpoints=_path(environment, "MARIN_SUP_CHECKPOINTS"),
        cache=_path(environment, "MARIN_SUP_CACHE"),
    )


def parse_resume(text: str) -> tuple[int, int] | None:
    """`none`, or ATTEMPT:STEP. Raises ConfigError."""
    if text == "none":
        return None
    attempt, colon, step = text.partition(":")
    if not (colon and attempt.isdecimal() and step.isdecimal() and int(attempt) >= 1):
        raise ConfigError(f"MARIN_SUP_RESUME: found {text[:80]!r}, allowed `none` or ATTEMPT:STEP, for example 3:120")
    return int(attempt), int(step)


def read_plan(path: Path) -> Plan:
    """Read the plan file. Raises ConfigError where it is missing, too large or malformed."""
    try:
        with path.open("rb") as file:
            text = file.read(PLAN_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"MARIN_SUP_PLAN: cannot read {path}: {error.strerror}") from error
    if len(text) > PLAN_BYTES_MAX:
        raise ConfigError(f"MARIN_SUP_PLAN: {path} is larger than {PLAN_BYTES_MAX} bytes")
    found = _json_object(text.decode("utf-8", "replace"), f"MARIN_SUP_PLAN ({path})")
    if found.get("version") != 1:
        raise ConfigError(f"MARIN_SUP_PLAN ({path}).version: found {found.get('version')!r}, allowed 1")
    seconds = found.get("checkpointEverySeconds")
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0):
        raise ConfigError(
            f"MARIN_SUP_PLAN ({path}).checkpointEverySeconds: found {seconds!r}, allowed a number above 0"
        )
    return Plan(
        token_budget=_integer_or_none(found, "tokenBudget", path),
        checkpoint_every_steps=_integer_or_none(found, "checkpointEverySteps", path),
        checkpoint_every_seconds=None if seconds is None else float(seconds),
        skipped_batches=_skips(found.get("skippedBatches", []), f"MARIN_SUP_PLAN ({path}).skippedBatches"),
    )


def _integer_or_none(found: dict[str, Any], name: str, path: Path) -> int | None:
    value = found.get(name)
    return None if value is None else _integer(value, f"MARIN_SUP_PLAN ({path}).{name}", 1)


def _skips(found: Any, where: str) -> tuple[tuple[int, int], ...]:
    if not isinstance(found, list) or len(found) > SKIPS_MAX:
        raise ConfigError(f"{where}: found {str(found)[:80]!r}, allowed at most {SKIPS_MAX} of [afterStep, count]")
    skips: list[tuple[int, int]] = []
    for index, pair in enumerate(found):
        if not isinstance(pair, list) or len(pair) != 2:
            raise ConfigError(f"{where}[{index}]: found {str(pair)[:80]!r}, allowed [afterStep, count]")
        after, count = (_integer(value, f"{where}[{index}][{place}]", 0) for place, value in enumerate(pair))
        if skips and after < skips[-1][0]:
            raise ConfigError(
                f"{where}[{index}]: found step {after} after step {skips[-1][0]}, allowed ascending by step"
            )
        skips.append((after, count))
    return tuple(skips)


def _json_object(text: str, where: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{where}: found a {type(found).__name__}, allowed a JSON object")
    return found


def _integer(value: Any, where: str, minimum: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= _INT_MAX:
        raise ConfigError(f"{where}: found {str(value)[:80]!r}, allowed an integer of at least {minimum}")
    return value


def _needed(environment: Mapping[str, str], name: str) -> str:
    if not environment.get(name):
        raise ConfigError(f"{name}: not set, but MARIN_SUP_CONTRACT is; the trainer contract requires it")
    return environment[name]


def _number(environment: Mapping[str, str], name: str, minimum: int) -> int:
    text = _needed(environment, name)
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise ConfigError(f"{name}: found {text[:80]!r}, allowed an integer of at least {minimum}")
    return _integer(int(text), name, minimum)


def _path(environment: Mapping[str, str], name: str) -> Path | None:
    return Path(environment[name]) if environment.get(name) else None
