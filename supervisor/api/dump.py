"""A `TrainingRun` as YAML or JSON, for `-o yaml` and `-o json`; `load` reads both back as the same run."""

from __future__ import annotations

import json
from typing import Any

import yaml

from supervisor.api.scalars import Ambiguous, resolve
from supervisor.api.types import TrainingRun


def to_data(run: TrainingRun) -> dict[str, Any]:
    """JSON-like data with every default written out, without fields that are unset or empty in metadata and status."""
    data: dict[str, Any] = run.model_dump(mode="json", by_alias=True, exclude_none=True)
    for section in ("metadata", "status"):
        if section in data:
            data[section] = {key: value for key, value in data[section].items() if value not in ({}, [])}
    return data


def to_json(run: TrainingRun) -> str:
    return json.dumps(to_data(run), indent=2, ensure_ascii=False) + "\n"


def to_yaml(run: TrainingRun) -> str:
    text: str = yaml.dump(to_data(run), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text


class _Dumper(yaml.SafeDumper):
    """Quotes each text that some reader of YAML would take for something else; writes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    try:
        plain = isinstance(resolve(text), str)
    except Ambiguous:
        plain = False
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


def _represent_float(dumper: _Dumper, value: float) -> yaml.Node:
    # Without its point 1e-05 is text for YAML 1.1.
    digits, exponent, power = repr(value).partition("e")
    return dumper.represent_scalar(
        "tag:yaml.org,2002:float", f"{digits}{'' if '.' in digits else '.0'}{exponent}{power}"
    )


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(float, _represent_float)
