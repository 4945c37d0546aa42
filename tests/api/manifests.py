"""Manifests for tests: a good one, and pieces to spoil it with."""

from __future__ import annotations

from typing import Any

from supervisor.api.types import TrainingRun
from supervisor.api.validation import parse_run

HEAD = "apiVersion: supervisor.marin.community/v1alpha1\nkind: TrainingRun\n"
LAYOUT = "layout: {racks: 2, nodesPerRack: 2}"
TRAINER = "trainer: {module: training.train}"


def manifest(*spec: str, metadata: str = "{name: hero}", rest: str = "") -> str:
    """A whole manifest; `spec` are lines of the spec, by default a layout and a trainer."""
    lines = spec or (LAYOUT, TRAINER)
    body = "".join(f"  {line}\n" for text in lines for line in text.splitlines())
    return f"{HEAD}metadata: {metadata}\nspec:\n{body}{rest}"


def run_with(**spec: Any) -> TrainingRun:
    """A TrainingRun whose spec is the smallest one but for the wire fields in `spec`."""
    smallest: dict[str, Any] = {"layout": {"racks": 2, "nodesPerRack": 2}, "trainer": {"module": "training.train"}}
    return parse_run(
        {
            "apiVersion": "supervisor.marin.community/v1alpha1",
            "kind": "TrainingRun",
            "metadata": {"name": "hero"},
            "spec": {**smallest, **spec},
        }
    )
