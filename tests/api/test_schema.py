"""The schema that becomes a CRD: bounded everywhere, in words a structural schema has, each field saying its effect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from supervisor.api.section import Effect
from supervisor.api.types import TrainingRun

SCHEMA = TrainingRun.model_json_schema(by_alias=True)
STRUCTURAL = {
    "type", "properties", "required", "additionalProperties", "items", "description", "default", "title", "format",
    "enum", "const", "pattern", "minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "minItems",
    "maxItems", "minProperties", "maxProperties", "x-allowed",
}  # fmt: skip


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """Without its reference and its null alternative; the description of the place wins over that of the type."""
    outer = {key: value for key, value in schema.items() if key not in ("anyOf", "$ref")}
    if "anyOf" in schema:
        options = [option for option in schema["anyOf"] if option != {"type": "null"}]
        assert len(options) == 1, f"a structural schema has no such union: {schema['anyOf']}"
        return {**resolved(options[0]), **outer}
    if "$ref" in schema:
        return {**resolved(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]), **outer}
    return schema


def places(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every value that the schema describes, with its path."""
    here = resolved(schema)
    yield path, here
    for name, below in here.get("properties", {}).items():
        yield from places(below, f"{path}.{name}")
    if "items" in here:
        yield from places(here["items"], f"{path}[]")
    if isinstance(here.get("additionalProperties"), dict):
        yield from places(here["additionalProperties"], f"{path}.*")


def ours() -> list[tuple[str, dict[str, Any]]]:
    """Spec and status; Kubernetes itself has the schema of metadata."""
    return [place for name in ("spec", "status") for place in places(SCHEMA["properties"][name], name)]


def test_every_field_of_the_spec_says_what_an_edit_does() -> None:
    effects = tuple(f" {effect}" for effect in Effect)
    fields = [(path, schema) for path, schema in ours() if path.startswith("spec.") and path[-1] not in "]*"]
    assert len(fields) > 40
    assert [path for path, schema in fields if not schema.get("description", "").endswith(effects)] == []


def test_every_value_has_a_description_or_belongs_to_one_that_has() -> None:
    assert [path for path, schema in ours() if path[-1] not in "]*" and len(schema.get("description", "")) < 5] == []


def test_every_text_list_map_and_number_is_bounded() -> None:
    needed = {
        "string": ("maxLength",),
        "array": ("maxItems",),
        "integer": ("minimum", "maximum"),
        "number": ("maximum",),
    }
    unbounded = []
    for path, schema in ours():
        keys = needed.get(schema.get("type", ""), ())
        if schema.get("type") == "object" and "properties" not in schema:
            keys = ("maxProperties",)
        if "enum" not in schema and "const" not in schema and not all(key in schema for key in keys):
            unbounded.append(path)
    assert unbounded == []


def test_a_structural_schema_can_say_all_of_it() -> None:
    strange = {path: set(schema) - STRUCTURAL for path, schema in ours()}
    assert {path: keys for path, keys in strange.items() if keys} == {}
    assert [path for path, schema in ours() if "type" not in schema] == []


def test_unknown_fields_are_refused_everywhere() -> None:
    objects = [(path, schema) for path, schema in ours() if schema["type"] == "object" and "properties" in schema]
    assert [path for path, schema in objects if schema.get("additionalProperties") is not False] == []


def test_fields_are_in_camel_case() -> None:
    names = [name for _, schema in ours() for name in schema.get("properties", {})]
    assert [name for name in names if "_" in name or not name[0].islower()] == []
    assert "plannedMFU" in names
