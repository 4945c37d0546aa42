"""A crc32c of every chunk of every array: the one place that reaches into Orbax.

Orbax 0.12.8 lets nobody choose the codecs of a chunk, and its own have no checksum of the data: a flipped bit restores
silently.
`install` appends crc32c to the codecs inside the sharding codec of the metadata that Orbax builds. What a reader needs
is in the zarr.json that is written, so reading needs no change and any zarr3 reader checks it. What was really written
is looked at before a manifest may follow (see seal.py): if a new version of Orbax builds its metadata elsewhere, the
first save fails with `ChecksumMissing`.
"""

from __future__ import annotations

import functools
from typing import Any

from orbax.checkpoint._src.serialization import tensorstore_utils  # type: ignore[import-untyped]

_BUILDER = "_build_zarr3_metadata"
_CRC32C = {"name": "crc32c"}


class ChecksumMissing(RuntimeError):
    """This version of Orbax writes chunks without our checksum; no checkpoint of it may count."""


def install() -> None:
    """Make Orbax write crc32c with every chunk, from now on in this process. Idempotent. Raises ChecksumMissing."""
    build = getattr(tensorstore_utils, _BUILDER, None)
    if build is None:
        raise ChecksumMissing(
            f"this version of Orbax has no {_BUILDER}, where chunk checksums are added; "
            "install the version that the constraints file names"
        )
    if getattr(build, "adds_crc32c", False):
        return

    @functools.wraps(build)
    def with_crc32c(*args: Any, **kwargs: Any) -> Any:
        metadata = build(*args, **kwargs)
        for codec in metadata["codecs"]:
            if codec["name"] == "sharding_indexed" and _CRC32C not in codec["configuration"]["codecs"]:
                codec["configuration"]["codecs"].append(dict(_CRC32C))
        return metadata

    with_crc32c.adds_crc32c = True  # type: ignore[attr-defined]
    setattr(tensorstore_utils, _BUILDER, with_crc32c)
