"""Windowed budgets: `5/24h` allows five events within any 24 hours."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from supervisor.api.duration import DURATION_PATTERN, Duration
from supervisor.api.words import ALLOWED

_BUDGET = re.compile(rf"([0-9]{{1,4}})/({DURATION_PATTERN})")


@dataclass(frozen=True, slots=True)
class Budget:
    """At most `count` events within a sliding `window`; 0 forgives none."""

    count: int
    window: Duration

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Read `5/24h`. Raises ValueError when `text` is not a budget or its window is empty."""
        match = _BUDGET.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise ValueError("not a budget")
        window = Duration.parse(match[2])
        if window.milliseconds == 0:
            raise ValueError("an empty window")
        return cls(int(match[1]), window)

    def __str__(self) -> str:
        return f"{self.count}/{self.window}"

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
            "pattern": f"^[0-9]{{1,4}}/{DURATION_PATTERN}$",
            "maxLength": 33,
            ALLOWED: "a budget such as 5/24h: how many, a slash, within how long",
        }
