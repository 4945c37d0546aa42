"""When checkpoints are due, and saving them. Steps and requests are known to all ranks alike; only rank 0 has a
clock.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict

from training.checkpoint import Checkpointer
from training.config import Config, Model
from training.contract import Contract
from training.events import Events
from training.gang import is_peer_failure
from training.outcome import StorageFailed
from training.step import State


def fingerprint(model: Model) -> str:
    """What must agree for a checkpoint to be loadable."""
    return hashlib.sha256(json.dumps({"model": asdict(model), "state": 1}, sort_keys=True).encode()).hexdigest()[:32]


class Saves:
    """Writes checkpoints of one attempt; does nothing where the process was given no place for them."""

    def __init__(self, config: Config, contract: Contract, events: Events, start: int) -> None:
        self._events = events
        self._every_steps = contract.plan.checkpoint_every_steps or config.checkpoint.every_steps
        self._every_seconds = contract.plan.checkpoint_every_seconds
        self._tokens_per_step = config.tokens_per_step
        self._saved = start
        self._clock = time.monotonic()
        self._checkpointer: Checkpointer | None = None
        if contract.checkpoints is not None:
            identity = fingerprint(config.model)
            self._checkpointer = Checkpointer(
                contract.checkpoints, contract.attempt, contract.resume, identity, events.emit
            )

    def overdue(self) -> bool:
        """By this rank's clock; rank 0 passes it on through its inbox."""
        return self._every_seconds is not None and time.monotonic() - self._clock >= self._every_seconds

    def due(self, step: int, asked: bool) -> bool:
        """The same answer on every rank."""
        return asked or step % self._every_steps == 0

    def save(self, step: int, state: State) -> None:
        """Start saving `state` after `step` unless that is done; blocks for the copy to the host alone. Raises
        StorageFailed.
        """
        if self._checkpointer is None or step == self._saved:
            return
        self._events.phase("save")
        try:
            self._checkpointer.save(step, state, step * self._tokens_per_step)
        except Exception as error:
            raise _storage_failure(step, error) from error
        self._saved, self._clock = step, time.monotonic()
        self._events.phase("train")

    def finish(self, step: int, state: State) -> None:
        """Save `state` if that is not done, and wait until every checkpoint is committed. Raises StorageFailed."""
        if self._checkpointer is None:
            return
        self.save(step, state)
        self._events.phase("save")
        try:
            self._checkpointer.wait()
            self._checkpointer.close()
        except Exception as error:
            raise _storage_failure(step, error) from error


def _storage_failure(step: int, error: Exception) -> Exception:
    """A peer that died in the middle of a save is not a fault of storage, and neither is a bug of ours."""
    if isinstance(error, OSError) and not is_peer_failure(error):
        return StorageFailed(step, error)
    return error
