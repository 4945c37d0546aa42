"""`-o`: which form a command prints, and the JSON forms themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
LIST_KIND = {"apiVersion": "supervisor.marin.community/v1alpha1", "kind": "List"}


def output_option(*forms: str) -> Callable[[Decorated], Decorated]:
    """The first of `forms` is the default."""
    return click.option("-o", "--output", type=click.Choice(forms), default=forms[0], help="Form of the output.")


def as_json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=True)


def as_yaml(data: Any) -> str:
    import yaml

    dumped: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=False, width=120)
    return dumped.rstrip("\n")


def as_list(items: list[Any]) -> dict[str, Any]:
    return {**LIST_KIND, "items": items}
