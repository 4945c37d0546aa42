"""How Orbax is set up: one zarr3 array per leaf with a checksum in every chunk, one file per chunk.

OCDBT stays off: its files hold regions that nothing refers to, so a flipped bit there could not be noticed, and its
per-process parts are merged after the fact. Without it each file is either hashed metadata or a chunk that checks
itself.
`_sharding` is not written: where an array goes is decided by who restores it, never by who saved it.
"""

from __future__ import annotations

import logging

import jax
import orbax.checkpoint as ocp
from etils import epath
from orbax.checkpoint import type_handlers

from training.checkpoint import chunk_codec

SLICE_BYTES_MIN = 1 << 20  # racks share the writing of a shard only where each still writes a mebibyte


class StateHandler(ocp.PyTreeCheckpointHandler):
    """Saves a flat table of jax.Array. Chunks have the shape of a shard, or of one rack's even slice of it.

    Raises chunk_codec.ChecksumMissing.
    """

    def __init__(self) -> None:
        chunk_codec.install()
        logging.getLogger("absl").addFilter(_without_traceback)  # a logger keeps one of each
        arrays = type_handlers.ArrayHandler(
            use_replica_parallel=True,
            min_slice_bytes_for_replica_parallel=SLICE_BYTES_MIN,
            enable_write_sharding_file=False,
        )
        super().__init__(
            use_ocdbt=False,
            use_zarr3=True,
            type_handler_registry=type_handlers.create_type_handler_registry((jax.Array, arrays)),
        )

    def finalize(self, directory: epath.Path) -> None:
        """Nothing to do: Orbax merges OCDBT parts of processes here, and warns at every save that there are none."""


def _without_traceback(record: logging.LogRecord) -> bool:
    """Orbax logs an error of its background thread with a very long traceback before it raises the same error."""
    if "orbax" in record.pathname:
        record.exc_info = None
    return True


@ocp.args.register_with_handler(StateHandler, for_save=True, for_restore=True)
class StateSave(ocp.args.PyTreeSave):
    """The argument of a save. Orbax pairs handlers with arguments by type, and wants one for restoring as well."""
