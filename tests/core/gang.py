"""All ranks of one attempt of the simulated world: they start together, step together and fall together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from supervisor.core.observation import Alarm, Checkpoint, Exit, FailedSave
from tests.core.node import SimGang, SimRank, SimWorker

if TYPE_CHECKING:
    from tests.core.world import World

STARTING = {"import": "restore", "restore": "train"}
FOLLOWED = "gloo: Connection reset by peer"


class SimAttempt:
    def __init__(self, world: World, attempt: int) -> None:
        self.world = world
        self.number = attempt
        self.parts: list[tuple[SimWorker, SimGang]] = [
            (worker, gang)
            for worker in world.workers.values()
            for gang in worker.gangs
            if gang.intent.attempt == attempt
        ]
        self.intent = self.parts[0][1].intent
        self.ranks: list[SimRank] = [rank for _, gang in self.parts for rank in gang.ranks]
        self.first: SimRank | None = next((rank for rank in self.ranks if rank.number == 0), None)

    def advance(self) -> None:
        world = self.world
        world.tree.attempts.add(self.number)
        if self._fall_together() or world.hangs_at_start:
            return
        if world.broken is not None:
            self._fail(world.broken, "ValueError: broken")
        elif any(rank.phase != "train" for rank in self.ranks):
            self._start()
        elif len(self.ranks) == self.intent.layout.world_size:
            self._step()

    def _fall_together(self) -> bool:
        """A rank that is gone, by its own exit or with its worker, takes the others along once they have started."""
        whole = len(self.ranks) == self.intent.layout.world_size
        started = any(rank.phase == "train" for rank in self.ranks)
        if not started or (whole and all(rank.alive for rank in self.ranks)):
            return False
        for worker, gang in self.parts:
            for rank in gang.ranks:
                if not worker.stubborn and rank.number != self.world.never_leaves:
                    self._exit(rank, 75, FOLLOWED)
        return True

    def _start(self) -> None:
        resume = self.intent.resume
        if resume is not None and self.first is not None and self.first.phase == "restore":
            if resume in self.world.tree.rotten:
                return self._fail(74, "a chunk fails its checksum", "checkpoint-damaged", resume)
            if resume not in self.world.tree.steps:
                return self._fail(70, "FileNotFoundError: no such checkpoint")
        for rank in self.ranks:
            rank.phase = STARTING.get(rank.phase, rank.phase)
        return None

    def _step(self) -> None:
        world = self.world
        before = max(rank.completed for rank in self.ranks) or (self.intent.resume.step if self.intent.resume else 0)
        step = before + 1
        if before >= world.total:
            return self._finish()
        if world.non_finite_at == step:
            return self._fail(70, f"the loss of step {step} is nan", "non-finite-loss")
        if world.bad_data_at == step:
            return self._fail(65, "shard 7 is no text")
        if world.exits_zero_at == step:
            return self._finish()
        if self._stands_still(step):
            return None
        for rank in self.ranks:
            rank.completed = rank.entered = step
            rank.own_ms = world.own_ms.get(self._node_of(rank), 10) if world.own_ms else 0
        stopping = world.heeds_stop and any(gang.intent.stop for _, gang in self.parts)
        asked = max(gang.intent.save for _, gang in self.parts)
        if step % world.every == 0 or step == world.total or stopping or asked > self.parts[0][1].saves_done:
            self._commit(step)
        self.parts[0][1].saves_done = asked
        if stopping:
            for rank in self.ranks:
                self._exit(rank, world.stop_code, "stopped as asked")
        elif step == world.total:
            self._finish()
        return None

    def _stands_still(self, step: int) -> bool:
        """Whether a rank that is stuck keeps all from finishing `step`; those that are not have entered it."""
        if all(rank.stuck is None for rank in self.ranks):
            return False
        for rank in self.ranks:
            if rank.stuck is None or self.world.stuck_inside:
                rank.entered = step
        return True

    def _node_of(self, rank: SimRank) -> str:
        return next(worker.node for worker, gang in self.parts if rank in gang.ranks)

    def _commit(self, step: int) -> None:
        if self.world.saves_fail:
            self.world.failed_saves.append(FailedSave(self.number, step, "no space left on device"))
            return
        checkpoint = self.world.tree.commit(self.number, step, self.intent.resume)
        teller = next(worker for worker, gang in self.parts if any(rank.number == 0 for rank in gang.ranks))
        teller.unsaid_commits.append(checkpoint)

    def _finish(self) -> None:
        for rank in self.ranks:
            if rank.number == self.world.never_leaves:
                continue
            follows = self.world.followers_at_end and rank.number > 0
            self._exit(rank, 75 if follows else 0, FOLLOWED if follows else "")

    def _fail(self, code: int, says: str, alarm: str = "", checkpoint: Checkpoint | None = None) -> None:
        """The first rank fails; the others notice at the next tick."""
        rank = self.first or self.ranks[0]
        self._exit(rank, code, says)
        if alarm:
            self.world.alarms.append(Alarm(self.number, rank.number, alarm, says, checkpoint))

    def _exit(self, rank: SimRank, code: int, says: str) -> None:
        if rank.alive:
            rank.exit = Exit(code, None, False, self.world.now, says)
