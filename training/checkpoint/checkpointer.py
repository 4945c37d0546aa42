"""Saving in the background: Orbax writes, a thread of ours waits for it and seals the step with its manifest."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp

from training.checkpoint import chunk_codec, storage_error
from training.checkpoint.manifest import step_directory
from training.checkpoint.naming import by_name
from training.checkpoint.orbax_handler import StateHandler, StateSave
from training.checkpoint.seal import seal
from training.checkpoint.step_files import STATE

WRITE_DEADLINE_SECONDS = 1200  # from the copy to host memory until every rank's part is on disk


class Checkpointer:
    """Saves the steps of one attempt below ROOT/aNNNN/. Every rank of the gang makes the same calls in the same order.

    Rank 0 writes the manifest and says `started` and `committed`; any rank may say `failed`. `on_event` may be called
    from a thread of ours. What went wrong in the background is raised by the next call: OSError where storage failed,
    otherwise the error itself (a JaxRuntimeError when a peer died).
    """

    def __init__(
        self,
        root: Path,
        attempt: int,
        parent: tuple[int, int] | None,
        fingerprint: str,
        on_event: Callable[[dict[str, Any]], None],
    ) -> None:
        """`parent` is the (attempt, step) that this attempt was resumed from. Touches no file.

        Raises ChecksumMissing where this version of Orbax cannot be made to write chunk checksums.
        """
        self._root = root
        self._attempt = attempt
        self._parent = None if parent is None else f"{parent[0]}:{parent[1]}"
        self._fingerprint = fingerprint
        self._on_event = on_event
        self._writer: threading.Thread | None = None
        self._error: BaseException | None = None
        chunk_codec.install()

    def save(self, step: int, state: Any, tokens: int) -> None:
        """Begin to save a pytree of jax.Array; `tokens` trained so far go into the manifest.

        Blocks while an earlier save is in flight and until the state is in host memory; after that its buffers may be
        donated.
        """
        named = jax.block_until_ready(
            by_name(state)
        )  # raises what training did wrong, such as a peer lost in a collective
        began = time.monotonic()
        self.wait()
        directory = step_directory(self._root, self._attempt, step)
        try:
            if jax.process_index() == 0:
                self._say("started", step)
                directory.mkdir(parents=True)
            orbax = self._orbax(step)
            orbax.save(directory.resolve() / STATE, args=StateSave(named))
        except Exception as error:
            shown = self._failed(step, error)
            if shown is error:
                raise
            raise shown from error
        blocked = time.monotonic() - began
        self._writer = threading.Thread(target=self._finish, args=(orbax, step, tokens, blocked), name=f"save-{step}")
        self._writer.start()

    def wait(self) -> None:
        """Until nothing is in flight; raises what went wrong since the last call."""
        if self._writer is not None:
            self._writer.join()
            self._writer = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def close(self) -> None:
        """`wait`, for the last time."""
        self.wait()

    def _orbax(self, step: int) -> ocp.AsyncCheckpointer:
        """One for each save, since its barriers take their names from a prefix that is fixed at its birth.

        Naming the processes makes every barrier one of the coordination service, with a deadline; otherwise Orbax
        0.12.8 uses a collective of the devices, without one, that could interleave with those of training.
        """
        return ocp.AsyncCheckpointer(
            StateHandler(),
            async_options=ocp.options.AsyncOptions(timeout_secs=WRITE_DEADLINE_SECONDS),
            multiprocessing_options=ocp.options.MultiprocessingOptions(
                primary_host=0,
                active_processes=set(range(jax.process_count())),
                barrier_sync_key_prefix=f"a{self._attempt}s{step}",
            ),
        )

    def _finish(self, orbax: ocp.AsyncCheckpointer, step: int, tokens: int, blocked: float) -> None:
        try:
            orbax.wait_until_finished()  # returns once every rank's part is on disk and named
            orbax.close()
            if jax.process_index() != 0:
                return
            size = seal(self._root, self._attempt, step, self._parent, self._fingerprint, tokens)
            self._say("committed", step, blockedSeconds=blocked, bytes=size)
        except BaseException as error:  # noqa: BLE001 - nobody is above this thread: the next call raises it
            self._error = self._failed(step, error)

    def _failed(self, step: int, error: BaseException) -> BaseException:
        """Say that a save failed; returns what to raise."""
        shown = self._explained(step, error)
        self._say("failed", step, message=str(shown)[:1000])
        return shown

    def _explained(self, step: int, error: BaseException) -> BaseException:
        if isinstance(error, TimeoutError) and isinstance(error.__cause__, jax.errors.JaxRuntimeError):
            error = error.__cause__  # Orbax calls every failed barrier a timeout; the cause says if a peer died
        if not isinstance(error, OSError) and not storage_error.from_tensorstore(error):
            return error
        directory = step_directory(self._root, self._attempt, step)
        shown = OSError(
            f"step {step} could not be saved to {directory}: {storage_error.detail(error)}; "
            "the checkpoints before it are untouched. Check the space, quota and permissions of that file system"
        )
        shown.__cause__ = error
        shown.errno = storage_error.number(error)
        return shown

    def _say(self, state: str, step: int, **members: Any) -> None:
        self._on_event({"event": "checkpoint", "state": state, "attempt": self._attempt, "step": step, **members})
