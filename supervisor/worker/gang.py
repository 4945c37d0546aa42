"""This node's share of one attempt: its ranks are started together, once, and stopped together."""

from __future__ import annotations

import sys
from pathlib import Path

from supervisor.wire.messages import GangOrder, GangReport
from supervisor.worker.offer import PortOffer
from supervisor.worker.rank_process import RankProcess, Surroundings

STARTING_SECONDS = 20.0  # that a gang's start has the node for itself; a slower one shares it


class Gang:
    def __init__(self, order: GangOrder, around: Surroundings) -> None:
        self.number = order.number
        self.named = True  # whether the newest order still names it
        self._order = order
        self._control = self._written_control = order.control
        self._started = False
        self._started_at = float("-inf")
        self._stopping = False
        directory = attempt_workdir(around.workdir, order.number)
        self.ranks = tuple(
            RankProcess(order, a, directory / f"rank-{a.rank:04d}", around)
            for a in sorted(order.ranks, key=lambda a: a.rank)  # rank 0 first: all others wait for its port
        )

    @property
    def ended(self) -> bool:
        return all(rank.ended is not None for rank in self.ranks)

    @property
    def waiting(self) -> bool:
        """Ordered, but an older gang still lives."""
        return not self._started and not self.ended

    @property
    def quiet_at(self) -> float:
        """When the node may do other work (monotonic seconds): a gang that starts, or will soon be followed by
        another one, comes first, but not for ever."""
        if all(rank.stepped and rank.ended is None for rank in self.ranks):
            return float("-inf")
        ends = (rank.ended.at for rank in self.ranks if rank.ended is not None)
        return max(self._started_at, *ends, float("-inf")) + STARTING_SECONDS

    def start(self, offer: PortOffer, now: float) -> None:
        self._started, self._started_at = True, now
        for rank in self.ranks:
            if rank.assignment.rank == 0:
                offer.give_up(self._order.coordinator)
            rank.start(now)

    def follow(self, order: GangOrder) -> None:
        """The newest order's word on a gang that goes on: only the control may change."""
        self._control = order.control
        self._write_control()

    def stop(self, now: float, grace_ms: int | None = None) -> None:
        self._stopping = True
        for rank in self.ranks:
            rank.terminate(now, self._order.grace_ms if grace_ms is None else max(0, grace_ms))

    def escalate(self, now: float) -> float | None:
        """Returns when to look again; see `RankProcess.escalate`."""
        self._write_control()
        times = [at for rank in self.ranks if (at := rank.escalate(now)) is not None]
        return min(times, default=None)

    def _write_control(self) -> None:
        """A full disk must not end the ranks: tried again until it works."""
        if self._control == self._written_control:
            return
        try:
            for rank in self.ranks:
                if rank.pid is not None and rank.ended is None:
                    rank.control(self._control)
            self._written_control = self._control
        except OSError as error:
            print(f"worker: attempt {self.number}: the control files cannot be written: {error}", file=sys.stderr)

    def report(self, now: float) -> GangReport:
        state = "ended" if self.ended else "stopping" if self._stopping else "running"
        return GangReport(self._order.kind, self.number, state, tuple(rank.report(now) for rank in self.ranks))


def attempt_workdir(workdir: Path, number: int) -> Path:
    return workdir / f"a{number:04d}"
