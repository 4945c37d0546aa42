"""Rules that bind several fields of one section. The CRD says each in CEL, with the same words.

A rule sees the values of the fields that it names, as written on the wire (a field left out has its default), and only
if each of them is valid by itself; so a typo elsewhere hides no broken rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from supervisor.api.words import escaped, listed


@dataclass(frozen=True, slots=True)
class Rule:
    """`check` gets the values of `fields` in that order and returns what is wrong, or None.

    `at` is the field that a mistake is shown at, empty for the section itself. `cel` is the rule for the CRD,
    `self` being the section.
    """

    at: str
    fields: tuple[str, ...]
    cel: str
    check: Callable[..., str | None]


def broken(rules: Sequence[Rule], values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(field, sentence) for each rule that `values` break; a rule whose fields are not all there is passed over."""
    ready = (rule for rule in rules if all(field in values for field in rule.fields))
    verdicts = ((rule.at, rule.check(*(values[field] for field in rule.fields))) for rule in ready)
    return [(at, sentence) for at, sentence in verdicts if sentence is not None]


def exactly_one_of(*fields: str) -> Rule:
    """One of `fields` is set, and no second one."""

    def check(*values: object) -> str | None:
        given = [field for field, value in zip(fields, values, strict=True) if value is not None]
        if len(given) == 1:
            return None
        seen = f"{'both ' if len(given) == 2 else ''}{listed(given)}" if given else "none"
        return f"found {seen}, allowed exactly one of {', '.join(fields)}"

    return Rule("", fields, f"[{', '.join(f'has(self.{f})' for f in fields)}].exists_one(x, x)", check)


def at_most_one_of(*fields: str) -> Rule:
    """One of `fields` is set, or none."""

    def check(*values: object) -> str | None:
        given = [field for field, value in zip(fields, values, strict=True) if value is not None]
        return f"found {listed(given)}, allowed at most one of them" if len(given) > 1 else None

    return Rule("", fields, f"[{', '.join(f'has(self.{f})' for f in fields)}].filter(x, x).size() <= 1", check)


def unique(field: str, key: str) -> Rule:
    """No two items of the list `field` share their `key`."""

    def check(items: Sequence[Any] | None) -> str | None:
        keys = [_member(item, key) for item in items or ()]
        twice = next((k for i, k in enumerate(keys) if k is not None and k in keys[:i]), None)
        return None if twice is None else f'found the {key} "{escaped(str(twice))}" twice, allowed once'

    cel = f"!has(self.{field}) || self.{field}.all(a, self.{field}.exists_one(b, b.{key} == a.{key}))"
    return Rule(field, (field,), cel, check)


def _member(item: Any, key: str) -> Any:
    return item.get(key) if isinstance(item, Mapping) else getattr(item, key, None)
