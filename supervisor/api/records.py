"""The core's own types as JSON: memory, observations and decisions on disk.

Writes every field; reads back the equal object. A file that lacks a field with a default is from an older version and
is read; an unknown field, a wrong type or broken JSON is refused.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from supervisor.api.mistakes import path_of
from supervisor.api.words import found

Record = TypeVar("Record")

# Without serialising infinities as constants, pydantic writes null for them and the object read back differs.
_CONFIG = ConfigDict(extra="forbid", strict=True, ser_json_inf_nan="constants", allow_inf_nan=True)
_SHOWN = 5


class BadRecord(ValueError):
    """Bytes that are not a record of the wanted class; `str()` says where and what was found."""


def to_json(record: object) -> bytes:
    """One line of JSON with every field of `record`, a frozen dataclass of enums, tuples, unions and plain values."""
    return _adapter(type(record)).dump_json((record,))[1:-1]


def from_json(cls: type[Record], content: bytes) -> Record:
    """The `cls` that `to_json` wrote. Raises `BadRecord`."""
    try:
        (record,) = _adapter(cls).validate_json(b"[" + content + b"]")
    except ValidationError as invalid:
        errors = invalid.errors(include_url=False)
        shown = "; ".join(_sentence(error) for error in errors[:_SHOWN])
        more = f"; and {len(errors) - _SHOWN} more" if len(errors) > _SHOWN else ""
        raise BadRecord(f"not a {cls.__name__}: {shown}{more}") from None
    result: Record = record
    return result


def _sentence(error: ErrorDetails) -> str:
    if error["type"] == "json_invalid":
        return f"not valid JSON: {error['ctx']['error']}"
    path = path_of(error["loc"][1:])
    if not path:
        return "found no single record"
    match error["type"]:
        case "missing":
            return f"{path} is missing"
        case "unexpected_keyword_argument":
            return f"{path} is unknown"
    return f"{path} is {found(error['input'])}"


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}  # building one takes some hundredths of a second


def _adapter(cls: type) -> TypeAdapter[Any]:
    """Of a tuple of one: pydantic takes a configuration for a tuple, but none for a plain dataclass by itself."""
    if cls not in _ADAPTERS:
        if not is_dataclass(cls):
            raise TypeError(f"{cls.__name__} is no dataclass")
        _refuse_alike(cls, set())
        _ADAPTERS[cls] = TypeAdapter(tuple[cls], config=_CONFIG)  # type: ignore[valid-type]
    return _ADAPTERS[cls]


def _refuse_alike(annotation: Any, seen: set[Any]) -> None:
    """Members of a union are told apart by their fields, so no two may have the same. Raises TypeError."""
    if is_dataclass(annotation) and annotation not in seen:
        seen.add(annotation)
        for hint in get_type_hints(annotation).values():
            _refuse_alike(hint, seen)
    members = [member for member in get_args(annotation) if is_dataclass(member)]
    if get_origin(annotation) in (Union, UnionType):
        names = [frozenset(field.name for field in fields(member)) for member in members]
        if len(set(names)) < len(names):
            raise TypeError(f"two members of {annotation} have the same fields, so JSON cannot tell them apart")
    for argument in get_args(annotation):
        _refuse_alike(argument, seen)
