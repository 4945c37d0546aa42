"""Plain data to a `TrainingRun`, with every mistake in our own words.

Pydantic finds where the data break the types; what a person reads comes from the schema of that place. Rules between
fields are then tried on every section, also where something else in it is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from supervisor.api.mistakes import BadManifest, Location, Mistake
from supervisor.api.rules import broken
from supervisor.api.section import RULE_BROKEN, Section
from supervisor.api.types import API_VERSION, KIND, TrainingRun
from supervisor.api.words import allowed, found, hint, nearest

Schema = Mapping[str, Any]


def parse_run(data: object, unreadable: frozenset[Location] = frozenset()) -> TrainingRun:
    """Check JSON-like `data` (from a file or an API server). Raises `BadManifest` with all mistakes, lines unknown.

    Nothing is said about the places in `unreadable` nor what lies below them: their mistakes are known.
    """
    mistakes = _of_another_kind(data)
    if mistakes and not _meant_as_ours(data):
        raise BadManifest(mistakes)
    try:
        return TrainingRun.model_validate_json(json.dumps(data), by_alias=True, by_name=False)
    except ValidationError as invalid:
        wrong = [_mistake(error) for error in invalid.errors(include_url=False) if error["type"] != RULE_BROKEN]
    wrong = [mistake for mistake in wrong if not _below(mistake.at, unreadable)]
    known = frozenset(mistake.at for mistake in wrong) | unreadable
    raise BadManifest([*wrong, *_broken_rules(TrainingRun, data, (), known)])


def _of_another_kind(data: object) -> list[Mistake]:
    """Another resource, or another version, breaks every field; only the reason for that is worth a line."""
    if not isinstance(data, Mapping):
        return [Mistake((), f"found {found(data)}, allowed a TrainingRun (a mapping with apiVersion, kind, ...)")]
    wanted = {"apiVersion": API_VERSION, "kind": KIND}
    return [
        Mistake((field,), f"found {found(data[field])}, allowed {name}")
        for field, name in wanted.items()
        if data.get(field) is not None and data[field] != name
    ]


def _meant_as_ours(data: object) -> bool:
    """A slip in the kind or in the version of something that else looks like a TrainingRun: all of it is checked."""
    spec = data.get("spec") if isinstance(data, Mapping) else None
    ours = _schema_at(("spec",)).get("required", ())
    return isinstance(spec, Mapping) and any(section in spec for section in ours)


def _mistake(error: ErrorDetails) -> Mistake:
    at = tuple(part for part in error["loc"] if part != "[key]")
    if error["type"] == "extra_forbidden":
        return Mistake(at, f"unknown field{_suggestion(at)}")
    schema = _schema_at(at)
    if error["type"] == "missing":
        return Mistake(at, f"missing, required is {allowed(schema)}")
    value = error["input"]
    optional = at and at[-1] not in _schema_at(at[:-1]).get("required", ())
    advice = "; leave it out for its default" if value is None and optional else hint(value, schema)
    return Mistake(at, f"found {_measured(value, schema)}, allowed {allowed(schema)}{advice}")


def _measured(value: object, schema: Schema) -> str:
    """What was found, and what of it is wrong where that does not show."""
    if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        return f"{len(value)} characters"
    if isinstance(value, str) and "\0" in value:
        return f"{found(value)} with a zero character"
    return found(value)


def _suggestion(at: Location) -> str:
    """The nearest known field beside the unknown one, else the section that knows its exact name."""
    name, siblings = str(at[-1]), _schema_at(at[:-1]).get("properties", {})
    near = nearest(name, siblings)
    if near:
        return f"; did you mean {near}?"
    for section, schema in siblings.items():
        if name in _resolved(schema).get("properties", {}):
            return f"; it belongs in {section}"
    return f"; allowed are {', '.join(siblings)}" if siblings else "; nothing is allowed here"


def _below(at: Location, places: frozenset[Location]) -> bool:
    return any(at[:length] in places for length in range(len(at) + 1))


def _broken_rules(model: type[BaseModel], data: object, at: Location, known: frozenset[Location]) -> Iterator[Mistake]:
    """Mistakes against the rules of `model` and of all sections below it, `data` being what was written for it."""
    if not isinstance(data, Mapping) or at in known:
        return
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    usable = {
        alias: data.get(alias, field.get_default(call_default_factory=True, validated_data={}))
        for alias, field in fields.items()
        if (*at, alias) not in known and (alias in data or not field.is_required())
    }
    rules = model.rules if issubclass(model, Section) else ()
    for shown_at, sentence in broken(rules, usable):
        yield Mistake((*at, shown_at) if shown_at else at, sentence)
    for alias, field in fields.items():
        for section in _sections(field.annotation):
            for place, part in _parts(data.get(alias), (*at, alias)):
                yield from _broken_rules(section, part, place, known)


def _sections(annotation: Any) -> list[type[Section]]:
    """The one section that a field holds, directly, optionally or in a list; or none."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return [annotation]
    return [section for argument in get_args(annotation) for section in _sections(argument)]


def _parts(value: object, at: Location) -> list[tuple[Location, object]]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [((*at, index), item) for index, item in enumerate(value)]
    return [(at, value)]


@cache
def _schema() -> Schema:
    return TrainingRun.model_json_schema(by_alias=True, mode="validation")


def _schema_at(at: Location) -> Schema:
    """The schema of the value at `at`, its reference and null alternative resolved; empty where there is none."""
    schema = _resolved(_schema())
    for part in at:
        if isinstance(part, int):
            schema = _resolved(schema.get("items", {}))
        else:
            below = schema.get("properties", {}).get(part, schema.get("additionalProperties"))
            schema = _resolved(below if isinstance(below, Mapping) else {})
    return schema


def _resolved(schema: Schema) -> Schema:
    if "anyOf" in schema:
        (schema,) = (option for option in schema["anyOf"] if option.get("type") != "null")
    if "$ref" not in schema:
        return schema
    definition: Schema = _schema()["$defs"][schema["$ref"].rpartition("/")[2]]
    return definition
