"""A fold of the trainer's events: where the run is, how fast, and how well the devices are used."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from supervisor.core.observation import Alarm, Checkpoint, FailedSave

WINDOW = 32  # completed steps that pace is measured over
MAX_ALARMS = 256
MAX_COMMITS = 64


@dataclass(slots=True)
class Progress:
    """Fed with contract events in the order of the journal. Everything that a trainer did not say stays None."""

    attempt: int = 0
    step: int = 0
    total_steps: int | None = None
    tokens_per_step: int | None = None
    flops_per_step: float | None = None
    peak_flops: float | None = None
    peak_is_measured: bool = False
    devices: int = 0
    parameters: int | None = None
    loss: float | None = None
    first_loss: float | None = None
    eval_loss: float | None = None
    dropped_fraction: float | None = None
    greeted: int = 0  # the attempt whose hello was heard
    phase: str = ""
    alarms: deque[Alarm] = field(default_factory=lambda: deque(maxlen=MAX_ALARMS))
    commits: deque[Checkpoint] = field(default_factory=lambda: deque(maxlen=MAX_COMMITS))
    failed_saves: deque[FailedSave] = field(default_factory=lambda: deque(maxlen=MAX_ALARMS))
    commit_times: dict[Checkpoint, int] = field(default_factory=dict)
    pace: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=WINDOW))  # (attempt, step, ms)

    @property
    def tokens(self) -> int | None:
        return None if self.tokens_per_step is None else self.step * self.tokens_per_step

    @property
    def seconds_per_step(self) -> float | None:
        """Over the last completed steps of the current attempt; None before there are two."""
        recent = [(step, ms) for attempt, step, ms in self.pace if attempt == self.attempt]
        if len(recent) < 2 or recent[-1][0] <= recent[0][0]:
            return None
        return (recent[-1][1] - recent[0][1]) / 1000 / (recent[-1][0] - recent[0][0])

    @property
    def tokens_per_second(self) -> float | None:
        seconds = self.seconds_per_step
        return self.tokens_per_step / seconds if seconds and self.tokens_per_step else None

    @property
    def mfu(self) -> float | None:
        """FLOP/s of the gang over the peak of its devices, while stepping; None where no peak is known."""
        seconds = self.seconds_per_step
        if not seconds or not self.flops_per_step or not self.peak_flops or not self.devices:
            return None
        return self.flops_per_step / seconds / (self.peak_flops * self.devices)

    def feed(self, at_ms: int, attempt: int, rank: int, event: dict[str, Any]) -> None:
        if attempt < self.attempt:
            return
        if attempt > self.attempt:
            self.attempt = attempt
            self.pace.clear()
        match event.get("event"):
            case "hello" if rank == 0 or self.greeted != attempt:
                self._hello(attempt, event)
            case "step" if event.get("state") == "completed":
                self._step(at_ms, attempt, rank, event)
            case "eval":
                self.eval_loss = _number(event.get("loss"))
            case "phase" if rank == 0:
                self.phase = str(event.get("phase", ""))
            case "checkpoint" if event.get("state") == "committed":
                self._committed(at_ms, attempt, event)
            case "checkpoint" if event.get("state") == "failed":
                self._save_failed(attempt, event)
            case "alarm":
                self._alarm(attempt, rank, event)

    def _hello(self, attempt: int, event: dict[str, Any]) -> None:
        self.greeted = attempt
        self.total_steps = _integer(event.get("totalSteps"))
        self.tokens_per_step = _integer(event.get("tokensPerStep")) or None
        self.flops_per_step = _number(event.get("flopsPerStep"))
        self.peak_flops = _number(event.get("peakFlopsPerDevice"))
        self.peak_is_measured = event.get("peakIsMeasured") is True
        self.devices = _integer(event.get("devices")) or 0
        self.parameters = _integer(event.get("parameters"))

    def _step(self, at_ms: int, attempt: int, rank: int, event: dict[str, Any]) -> None:
        step = _integer(event.get("step"))
        if step is None or rank != 0:
            return
        self.step = step
        self.pace.append((attempt, step, at_ms))
        loss = _number(event.get("loss"))
        if loss is None:
            return
        self.loss = loss
        if self.first_loss is None:
            self.first_loss = loss
        metrics = event.get("metrics")
        if isinstance(metrics, dict):
            self.dropped_fraction = _number(metrics.get("dropFraction"))

    def _committed(self, at_ms: int, attempt: int, event: dict[str, Any]) -> None:
        """A rank can commit in the name of its own attempt alone."""
        checkpoint = _checkpoint(event)
        if checkpoint is not None and checkpoint.attempt == attempt and checkpoint not in self.commits:
            self.commits.append(checkpoint)
            self.commit_times[checkpoint] = at_ms

    def _save_failed(self, attempt: int, event: dict[str, Any]) -> None:
        checkpoint = _checkpoint(event)
        if checkpoint is not None and checkpoint.attempt == attempt:
            message = str(event.get("message") or "no reason given")
            self.failed_saves.append(FailedSave(attempt, checkpoint.step, message[:500]))

    def _alarm(self, attempt: int, rank: int, event: dict[str, Any]) -> None:
        kind, message = str(event.get("kind", "other")), str(event.get("message", ""))
        self.alarms.append(Alarm(attempt, rank, kind, message[:1000], _checkpoint(event)))


def _checkpoint(event: dict[str, Any]) -> Checkpoint | None:
    attempt, step = _integer(event.get("attempt")), _integer(event.get("step"))
    return None if attempt is None or step is None else Checkpoint(attempt, step)


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer beyond what a float holds
        return None
