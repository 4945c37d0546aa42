"""The checkpoint tree of the simulated world: what is on disk, whatever anybody believes about it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from supervisor.core.actions import Task
from supervisor.core.observation import Checkpoint, StepState, Survey, SurveyedStep


@dataclass
class Tree:
    """`rotten`: manifests that verify over chunks that do not; only a restore finds out.

    `manifests`: whether the trainer writes any; without, a finished step looks like an unfinished one.
    """

    steps: dict[Checkpoint, SurveyedStep] = field(default_factory=dict)
    attempts: set[int] = field(default_factory=set)
    rotten: set[Checkpoint] = field(default_factory=set)
    set_aside: list[Checkpoint] = field(default_factory=list)
    unreadable: str = ""
    manifests: bool = True

    def commit(self, attempt: int, step: int, parent: Checkpoint | None) -> Checkpoint:
        checkpoint = Checkpoint(attempt, step)
        whole = SurveyedStep(attempt, step, StepState.VERIFIED, parent)
        self.steps[checkpoint] = whole if self.manifests else SurveyedStep(attempt, step, StepState.UNFINISHED)
        return checkpoint

    def damage(self, checkpoint: Checkpoint) -> None:
        """As a flipped bit in the manifest: the survey sees it."""
        self.steps[checkpoint] = replace(self.steps[checkpoint], state=StepState.DAMAGED, reason="a hash differs")

    def newest(self) -> Checkpoint | None:
        return max(self.steps, key=lambda c: (c.attempt, c.step), default=None)

    def survey(self, name: str) -> Survey:
        if self.unreadable:
            return Survey(name, error=self.unreadable)
        order = sorted(self.steps, key=lambda c: (c.attempt, c.step))
        return Survey(name, tuple(self.steps[c] for c in order), max(self.attempts, default=0))

    def move_away(self, checkpoint: Checkpoint) -> None:
        if self.steps.pop(checkpoint, None):
            self.set_aside.append(checkpoint)

    def collect(self, task: Task) -> None:
        """Everything that is not kept goes, but for what the current attempt committed since the task was written."""
        newest = max((c.step for c in task.keep if c.attempt == task.current), default=0)
        for checkpoint in list(self.steps):
            finished = self.steps[checkpoint].state is not StepState.UNFINISHED
            since = checkpoint.attempt == task.current and (checkpoint.step > newest or not finished)
            if checkpoint not in task.keep and checkpoint.attempt <= task.current and not since:
                del self.steps[checkpoint]
