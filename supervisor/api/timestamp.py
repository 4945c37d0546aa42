"""Moments as RFC 3339 writes them: `2027-03-15T00:00:00Z`."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from supervisor.api.words import ALLOWED

_RFC3339 = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})", re.ASCII)


def parse_timestamp(text: str) -> datetime:
    """Read a moment with its offset from UTC. Raises ValueError when it is none or lacks the offset.

    Digits beyond microseconds are dropped: Python's clock types end there.
    """
    if not isinstance(text, str) or not _RFC3339.fullmatch(text):
        raise ValueError("not a moment in time")
    return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text))


def timestamp_text(moment: datetime) -> str:
    """`moment`, which knows its offset, as RFC 3339; UTC as `Z`. Raises ValueError for one that does not."""
    if moment.tzinfo is None:
        raise ValueError("a moment without its offset from UTC cannot be written down")
    return moment.isoformat().replace("+00:00", "Z")


class _Rfc3339:
    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            lambda value: parse_timestamp(timestamp_text(value) if isinstance(value, datetime) else value),
            serialization=core_schema.plain_serializer_function_ser_schema(timestamp_text),
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        allowed = "a moment with its offset from UTC, such as 2027-03-15T00:00:00Z"
        return {"type": "string", "format": "date-time", "maxLength": 64, ALLOWED: allowed}


Timestamp = Annotated[datetime, _Rfc3339()]
