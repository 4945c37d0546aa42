"""What a zarr.json says about its array: shape, kind of number, and whether each chunk carries a checksum."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

METADATA = "zarr.json"
METADATA_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class ZarrArray:
    shape: tuple[int, ...]
    dtype: str
    chunks_checked: bool  # crc32c over the data of each chunk and over the index of its shard


def parse(text: bytes) -> ZarrArray:
    """Raises ValueError when it is no zarr3 array."""
    try:
        members = json.loads(text)
        shape, dtype, codecs = members["shape"], members["data_type"], members["codecs"]
        return ZarrArray(tuple(int(size) for size in shape), str(dtype), _checked(codecs))
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError("not the metadata of a zarr3 array") from error


def _checked(codecs: list[dict[str, Any]]) -> bool:
    """One shard file holds chunks and an index of them; each needs a checksum of its own."""
    match codecs:
        case [{"name": "sharding_indexed", "configuration": {"codecs": list(chunk), "index_codecs": list(index)}}]:
            return all(any(codec.get("name") == "crc32c" for codec in inner) for inner in (chunk, index))
        case _:
            return False
