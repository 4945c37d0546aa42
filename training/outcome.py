"""How a rank ends: every way out, its exit code (sysexits, trainer contract) and what it says. One table."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from training.config import ConfigError

DONE, BAD_DATA, PROGRAM_ERROR, STORAGE_FAILED, RESTART_ME, BAD_CONFIG = 0, 65, 70, 74, 75, 78


class DataError(Exception):
    """The data cannot be trained on; the message names the file."""


class NonFiniteLoss(Exception):
    """The loss of `step` is not a number; nothing of it is saved."""

    def __init__(self, step: int, loss: float) -> None:
        super().__init__(
            f"the loss of step {step} is {loss}; it was not saved. Look at that step's data and the learning rate"
        )
        self.step = step


class StorageFailed(Exception):
    """A checkpoint could not be written."""

    def __init__(self, step: int, error: BaseException) -> None:
        super().__init__(f"the checkpoint of step {step} could not be written: {error}")
        self.step = step


@dataclass(frozen=True, slots=True)
class Outcome:
    """An exit code, an alarm to raise (None: the code says all), and the text for stderr."""

    code: int
    message: str
    alarm: str | None = None
    attempt: int | None = None
    step: int | None = None


def judge(error: BaseException) -> Outcome:
    """Name the outcome of an error. What the user can mend has one clear message; only our own errors show a
    traceback.
    """
    match error:
        case ConfigError():
            return Outcome(BAD_CONFIG, str(error))
        case DataError():
            return Outcome(BAD_DATA, str(error), "data")
        case NonFiniteLoss():
            return Outcome(PROGRAM_ERROR, str(error), "non-finite-loss", step=error.step)
        case StorageFailed():
            return Outcome(STORAGE_FAILED, str(error), "storage", step=error.step)
    return (
        _judge_checkpoint(error)
        or _judge_peer(error)
        or Outcome(PROGRAM_ERROR, "".join(traceback.format_exception(error)))
    )


def _judge_checkpoint(error: BaseException) -> Outcome | None:
    from training.checkpoint import CheckpointDamaged, CheckpointForeign  # imports Orbax, so not before it is needed

    match error:
        case CheckpointDamaged():
            return Outcome(STORAGE_FAILED, str(error), "checkpoint-damaged", error.attempt, error.step)
        case CheckpointForeign():
            return Outcome(BAD_CONFIG, str(error), "checkpoint-foreign", error.attempt, error.step)
    return None


def _judge_peer(error: BaseException) -> Outcome | None:
    from training.gang import is_peer_failure  # imports JAX, so not before it is needed

    if not is_peer_failure(error):
        return None
    return Outcome(RESTART_ME, f"another rank failed: {error}", "peer-failed")
