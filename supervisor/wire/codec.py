"""Frozen dataclasses to JSON and back, strictly: what arrives from the other side is untrusted.

A member that is missing takes its default; one that we do not know is ignored, so that two versions work
together; one of the wrong type or beyond a bound raises `Malformed` with its path.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from typing import Any, TypeVar

MAX_STRING = 1 << 20
MAX_ITEMS = 100_000
MAX_DEPTH = 32
_PLAIN = frozenset({str, int, float, bool, type(None)})

T = TypeVar("T")
JsonObject = dict[str, Any]


class Malformed(ValueError):
    """A message that does not fit its type. `path` says where, the text what was found and what is allowed."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path or 'message'}: {problem}")
        self.path = path


def encode(value: Any) -> Any:
    """The JSON form of a dataclass, tuple, dict or plain value."""
    if type(value) in _PLAIN:
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: encode(getattr(value, name)) for name in _names(type(value))}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    return value


def decode(cls: type[T], data: Any) -> T:
    """`data`, as parsed from JSON, as an instance of the dataclass `cls`. Raises `Malformed`."""
    return typing.cast(T, _decode(cls, data, "", 0))


@functools.cache
def _names(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls))


@functools.cache
def _members(cls: type) -> tuple[tuple[str, Any, bool], ...]:
    hints = typing.get_type_hints(cls)
    missing = dataclasses.MISSING
    return tuple(
        (f.name, hints[f.name], f.default is missing and f.default_factory is missing) for f in dataclasses.fields(cls)
    )


def _decode(kind: Any, data: Any, path: str, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise Malformed(path, f"nested deeper than {MAX_DEPTH}")
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        return _decode_optional(kind, data, path, depth)
    if origin is tuple:
        return _decode_tuple(kind, data, path, depth)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _decode_dataclass(kind, data, path, depth)
    if origin is dict or kind is dict:
        return _decode_dict(kind, data, path, depth)
    return _decode_scalar(kind, data, path)


def _decode_dataclass(kind: type, data: Any, path: str, depth: int) -> Any:
    if not isinstance(data, dict):
        raise Malformed(path, f"found {_shape(data)}, an object is allowed")
    values = {}
    for name, hint, required in _members(kind):
        where = f"{path}.{name}" if path else name
        if name in data:
            values[name] = _decode(hint, data[name], where, depth + 1)
        elif required:
            raise Malformed(where, "is missing")
    return kind(**values)


def _decode_tuple(kind: Any, data: Any, path: str, depth: int) -> Any:
    if not isinstance(data, list):
        raise Malformed(path, f"found {_shape(data)}, a list is allowed")
    if len(data) > MAX_ITEMS:
        raise Malformed(path, f"holds {len(data)} items, at most {MAX_ITEMS} are allowed")
    arguments = typing.get_args(kind)
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_decode(arguments[0], item, f"{path}[{i}]", depth + 1) for i, item in enumerate(data))
    if len(arguments) != len(data):
        raise Malformed(path, f"holds {len(data)} items, exactly {len(arguments)} are allowed")
    return tuple(_decode(k, v, f"{path}[{i}]", depth + 1) for i, (k, v) in enumerate(zip(arguments, data, strict=True)))


def _decode_optional(kind: Any, data: Any, path: str, depth: int) -> Any:
    members = [m for m in typing.get_args(kind) if m is not type(None)]
    if data is None:
        if len(members) == len(typing.get_args(kind)):
            raise Malformed(path, "found null, which is not allowed")
        return None
    if len(members) == 1:
        return _decode(members[0], data, path, depth)
    for member in members:
        try:
            return _decode(member, data, path, depth)
        except Malformed:
            continue
    raise Malformed(path, f"found {_shape(data)}, which fits none of the allowed types")


def _decode_dict(kind: Any, data: Any, path: str, depth: int) -> Any:
    if not isinstance(data, dict):
        raise Malformed(path, f"found {_shape(data)}, an object is allowed")
    if len(data) > MAX_ITEMS:
        raise Malformed(path, f"holds {len(data)} members, at most {MAX_ITEMS} are allowed")
    _, value_kind = typing.get_args(kind) or (str, Any)
    if value_kind is Any:
        return data
    return {key: _decode(value_kind, item, f"{path}.{key[:100]}", depth + 1) for key, item in data.items()}


def _decode_scalar(kind: Any, data: Any, path: str) -> Any:
    if kind is Any:
        return data
    if kind is float and isinstance(data, int | float) and not isinstance(data, bool):
        return float(data)
    if kind is int and isinstance(data, bool):
        raise Malformed(path, "found a boolean, an integer is allowed")
    if not isinstance(data, kind):
        raise Malformed(path, f"found {_shape(data)}, {kind.__name__} is allowed")
    if isinstance(data, str) and len(data) > MAX_STRING:
        raise Malformed(path, f"is {len(data)} characters long, at most {MAX_STRING} are allowed")
    return data


def _shape(data: Any) -> str:
    if data is None:
        return "null"
    return {
        dict: "an object",
        list: "a list",
        str: "a string",
        bool: "a boolean",
        int: "a number",
        float: "a number",
    }.get(type(data), type(data).__name__)
