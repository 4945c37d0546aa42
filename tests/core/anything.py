"""Values of any type of the core: right in type, and otherwise whatever an observer or a file might hold."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

NODES = ["r0n0", "r0n1", "r1n0", "r1n1"]
WORDS = [*NODES, "r0", "r1", "s1", "", "standby", "a1:stop", "a1:run", "survey-0-1", "check-0-2", "collect-a1:1"]
KINDS = ["checkpoint-damaged", "checkpoint-foreign", "non-finite-loss", "peer-failed", "compile", "restore", "save"]
NUMBERS = st.one_of(st.integers(0, 3), st.integers(-2, 100_000))
FEW = {
    "ranks_per_node": st.integers(0, 2),  # loops run over them
    "signal": st.one_of(st.none(), st.integers(0, 64)),
    "because": st.sampled_from(NODES),  # a verdict always says something
}


def anything(kind: Any) -> st.SearchStrategy[Any]:
    """A strategy for a dataclass, enum, tuple, union or plain type of the core."""
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return st.builds(kind, **{f.name: _field(f.name, hints[f.name]) for f in fields(kind)})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return st.one_of(*(anything(part) for part in arguments))
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(anything(arguments[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*(anything(part) for part in arguments))
    return _plain(kind)


def _field(name: str, kind: Any) -> st.SearchStrategy[Any]:
    return FEW[name] if name in FEW else anything(kind)


def _plain(kind: Any) -> st.SearchStrategy[Any]:
    if kind is NoneType:
        return st.none()
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    return {
        bool: st.booleans(),
        int: NUMBERS,
        float: st.floats(0, 1),
        str: st.sampled_from([*WORDS, *KINDS]),
    }[kind]
