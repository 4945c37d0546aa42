"""Kubernetes' object metadata: what a person writes, and what the server adds and `kubectl get -o yaml` prints.

The server-set fields are let through, so that a file that was printed can be read again; nothing here uses them.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue, StringConstraints

from supervisor.api.rules import Rule
from supervisor.api.section import Argument, Effect, LabelValue, Namespace, RunName, Section, described
from supervisor.api.timestamp import Timestamp
from supervisor.api.words import escaped

_ServerText = Annotated[str, StringConstraints(max_length=253)]
_Json = Annotated[dict[str, JsonValue], Field(max_length=64)]


def label_keys(field: str) -> Rule:
    """Every key of the map `field` is a Kubernetes label key. (A structural schema cannot bound a map's keys.)"""
    pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"

    def check(labels: dict[str, object] | None) -> str | None:
        wrong = [key for key in labels or {} if not _is_label_key(key)]
        if not wrong:
            return None
        return f'found the key "{escaped(wrong[0])}", allowed the key of a label, such as example.com/rack'

    cel = f"!has(self.{field}) || self.{field}.all(k, k.size() <= 317 && k.matches('{pattern}'))"
    return Rule(field, (field,), cel, check)


def _is_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    fits = len(name) <= 63 and _ends_well(name) and all(c in "-_." or _alphanumeric(c) for c in name)
    if not slash:
        return fits
    lower = len(prefix) <= 253 and _ends_well(prefix) and all(c in "-." or _alphanumeric(c) for c in prefix)
    return fits and lower and prefix == prefix.lower()


def _ends_well(text: str) -> bool:
    return bool(text) and _alphanumeric(text[0]) and _alphanumeric(text[-1])


def _alphanumeric(character: str) -> bool:
    return character.isascii() and character.isalnum()


class Metadata(Section):
    rules = (label_keys("labels"),)

    name: RunName = described("Name of the run; a DNS label.", Effect.REFUSED)
    namespace: Namespace | None = described("Kubernetes namespace; unused on one machine.", Effect.REFUSED, None)
    labels: Annotated[dict[str, LabelValue], Field(max_length=64)] = described(
        "Labels to find the run by.", Effect.AT_ONCE, default_factory=dict
    )
    annotations: Annotated[dict[str, Annotated[str, StringConstraints(max_length=262_144)]], Field(max_length=64)] = (
        described("Notes that nothing selects by.", Effect.AT_ONCE, default_factory=dict)
    )
    uid: _ServerText | None = described("Set by the server.", Effect.REFUSED, None)
    resource_version: _ServerText | None = described("Set by the server.", Effect.REFUSED, None)
    generation: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = described("Set by the server.", Effect.REFUSED, None)
    creation_timestamp: Timestamp | None = described("Set by the server.", Effect.REFUSED, None)
    deletion_timestamp: Timestamp | None = described("Set by the server.", Effect.REFUSED, None)
    deletion_grace_period_seconds: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = described(
        "Set by the server.", Effect.REFUSED, None
    )
    finalizers: Annotated[tuple[Argument, ...], Field(max_length=64)] = described(
        "Set by controllers.", Effect.AT_ONCE, ()
    )
    owner_references: Annotated[tuple[_Json, ...], Field(max_length=64)] = described(
        "Set by controllers.", Effect.AT_ONCE, ()
    )
    managed_fields: Annotated[tuple[_Json, ...], Field(max_length=1000)] = described(
        "Set by the server.", Effect.REFUSED, ()
    )
