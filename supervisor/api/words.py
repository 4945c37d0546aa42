"""What was found and what is allowed, in plain words, for whoever has to repair a manifest.

`allowed` reads a JSON schema, so what a person is told and what the CRD will say come from one place. A schema may
carry its own words under the key `ALLOWED`, which no schema consumer reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

ALLOWED = "x-allowed"
_SHOWN = 60  # characters of a found value; the rest is cut


def escaped(text: str, limit: int = _SHOWN) -> str:
    """`text` fit for a terminal: at most `limit` characters, control and non-printing ones as escapes."""
    cut = text[:limit]
    shown = "".join(c if c.isprintable() and c != "\\" else c.encode("unicode_escape").decode("ascii") for c in cut)
    return shown if len(text) <= limit else f"{shown}... ({len(text)} characters)"


def found(value: object) -> str:
    """Name a value that came from a manifest, bounded and escaped."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return f"{str(value).lower()} (a boolean)"
    if isinstance(value, int | float):
        return escaped(str(value)) if abs(value) < 1e30 else "a number out of all bounds"
    if isinstance(value, str):
        return f'"{escaped(value)}"' if value else "an empty text"
    if isinstance(value, Mapping):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, Iterable):
        count = len(list(value))
        return {0: "an empty list", 1: "a list of 1 item"}.get(count, f"a list of {count} items")
    return f"a {type(value).__name__}"


def allowed(schema: Mapping[str, Any]) -> str:
    """Name what `schema` (with references resolved) lets through."""
    if ALLOWED in schema:
        return str(schema[ALLOWED])
    choices = schema.get("enum") or ([schema["const"]] if "const" in schema else None)
    if choices:
        return either([str(choice) for choice in choices])
    match schema.get("type"):
        case "boolean":
            return "true or false"
        case "integer":
            return f"a whole number{_range(schema)}"
        case "number":
            return f"a number{_range(schema)}"
        case "string":
            return f"text{_count(schema, 'minLength', 'maxLength', 'characters')}"
        case "array":
            return f"a list{_count(schema, 'minItems', 'maxItems', 'items')}"
        case "object" if "required" in schema:
            return f"a mapping with at least {listed(schema['required'])}"
        case "object" if "properties" in schema:
            return f"a mapping of {listed(list(schema['properties']))}" if schema["properties"] else "{}"
        case "object":
            return f"a mapping{_count(schema, 'minProperties', 'maxProperties', 'entries')} from names to text"
    return "another value"


def hint(value: object, schema: Mapping[str, Any]) -> str:
    """The most likely repair, as a clause to append, or nothing."""
    if isinstance(value, bool | int | float) and schema.get("type") == "string" and "enum" not in schema:
        # Of a float the digits as written are gone (1.10 is 1.1 by now).
        shown = "" if isinstance(value, float) else f", {json.dumps(str(value).lower())}"
        return f"; write it in quotes{shown}" if ALLOWED not in schema else ""
    if isinstance(value, float) and value.is_integer() and schema.get("type") == "integer" and abs(value) < 1e18:
        return f"; write {int(value)}"
    choices = [choice for choice in schema.get("enum", []) if isinstance(choice, str)]
    near = nearest(value, choices) if isinstance(value, str) else None
    return f"; did you mean {near}?" if near else ""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` was probably meant to be; letter case and underscores weigh nothing."""
    plain = {_plain(candidate): candidate for candidate in known}
    matches = get_close_matches(_plain(name[:100]), plain, n=1, cutoff=0.6)
    return plain[matches[0]] if matches else None


def either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _range(schema: Mapping[str, Any]) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        return f" above {schema['exclusiveMinimum']}" + (f" and up to {most}" if most is not None else "")
    if least is not None and most is not None:
        return f" from {least} to {most}"
    if least is not None:
        return f", at least {least}"
    return f", at most {most}" if most is not None else ""


def _count(schema: Mapping[str, Any], least_key: str, most_key: str, unit: str) -> str:
    least, most = schema.get(least_key, 0), schema.get(most_key)
    if least and most is not None:
        return f" of {least} to {most} {unit}"
    return f" of at most {most} {unit}" if most is not None else ""
