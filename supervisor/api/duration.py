"""Durations as Kubernetes writes them: `45m`, `1h30m`, `500ms`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from supervisor.api.words import ALLOWED

# The format of the Gateway API's GEP-2257: whole numbers, at most five digits, each unit at most once. It is the part
# of Go's duration syntax that every language parses alike.
DURATION_PATTERN = r"([0-9]{1,5}(h|m|s|ms)){1,4}"
_PART = re.compile(r"([0-9]{1,5})(ms|h|m|s)")
_WHOLE = re.compile(DURATION_PATTERN)
_MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time in whole milliseconds, never negative."""

    milliseconds: int

    @classmethod
    def parse(cls, text: str) -> Duration:
        """Read `1h30m`. Raises ValueError when `text` is not a duration or names a unit twice."""
        if not isinstance(text, str) or not _WHOLE.fullmatch(text):
            raise ValueError("not a duration")
        parts = _PART.findall(text)
        if len({unit for _, unit in parts}) < len(parts):
            raise ValueError("a unit is named twice")
        return cls(sum(int(number) * _MILLISECONDS[unit] for number, unit in parts))

    @property
    def seconds(self) -> float:
        return self.milliseconds / 1000

    def __str__(self) -> str:
        """The shortest text that `parse` reads back as the same duration."""
        rest, parts = self.milliseconds, []
        for unit, size in _MILLISECONDS.items():
            number, rest = divmod(rest, size)
            if number:
                parts.append(f"{number}{unit}")
        return "".join(parts) or "0s"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, cls) else cls.parse(value),
            serialization=core_schema.plain_serializer_function_ser_schema(str),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {
            "type": "string",
            "pattern": f"^{DURATION_PATTERN}$",
            "maxLength": 28,
            ALLOWED: "a duration such as 45m, 1h30m or 500ms",
        }


class Between:
    """Annotates a `Duration` with bounds, both allowed; the schema says them in words."""

    def __init__(self, least: str, most: str) -> None:
        self.least, self.most = least, most

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        allowed = f"a duration from {self.least} to {self.most}, such as 45m, 1h30m or 500ms"
        return {**handler(schema), ALLOWED: allowed}

    def _check(self, value: Duration) -> Duration:
        if not Duration.parse(self.least) <= value <= Duration.parse(self.most):
            raise ValueError(f"not between {self.least} and {self.most}")
        return value
