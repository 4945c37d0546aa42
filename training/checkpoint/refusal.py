"""Why a checkpoint cannot be used: it is damaged, or it belongs to another model."""

from __future__ import annotations


class _Refusal(Exception):
    """`attempt` and `step` name the checkpoint; `reason` is a sentence for a person."""

    def __init__(self, attempt: int, step: int, reason: str) -> None:
        super().__init__(f"checkpoint {attempt}:{step}: {reason}")
        self.attempt = attempt
        self.step = step
        self.reason = reason


class CheckpointDamaged(_Refusal):
    """It was never finished, or what is on disk is not what was saved. An older one may be good."""


class CheckpointForeign(_Refusal):
    """It is whole, but its state does not fit this model. Only another configuration or directory helps."""
