"""What the newest order asks of this node's gangs. Attempt numbers fence: an older one than the newest is refused."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from supervisor.wire.messages import TRAINING, ExitReport, GangOrder, GangReport, Order, RankReport
from supervisor.worker.evidence.living_rank import LivingRank
from supervisor.worker.gang import Gang
from supervisor.worker.offer import PortOffer
from supervisor.worker.rank_process import RankProcess, Surroundings

KEPT_ATTEMPTS = 20  # their output stays on disk
_ATTEMPT = re.compile(r"a(\d{4,18})")


class Gangs:
    def __init__(self, around: Surroundings) -> None:
        self.offer = PortOffer()
        self._around = around
        self._newest_file = around.workdir / "newest_attempt"
        self.newest = _read_number(self._newest_file)
        self._gangs: dict[int, Gang] = {}
        self._answers: list[GangReport] = []  # to what the order names and does not live here

    @property
    def all_ended(self) -> bool:
        return all(gang.ended for gang in self._gangs.values())

    def follow(self, order: Order, now: float) -> None:
        named = {gang.number: gang for gang in order.gangs if gang.kind == TRAINING}
        self._answers = [_unsupported(gang) for gang in order.gangs if gang.kind != TRAINING]
        wanted = max((g.number for g in named.values() if g.command == "run"), default=0)
        for met in named.values():
            if met.number not in self._gangs:
                self._meet(met, wanted)
        for number, gang in self._gangs.items():
            ordered = named.get(number)
            gang.named = ordered is not None
            if ordered is not None and ordered.command == "run" and number >= wanted:
                gang.follow(ordered)
            elif not gang.ended:
                gang.stop(now, ordered.grace_ms if ordered is not None else None)

    def advance(self, now: float) -> float | None:
        """Kill what is past its grace and start what may start. Returns when to look again (monotonic seconds)."""
        times = [at for gang in self._gangs.values() if (at := gang.escalate(now)) is not None]
        waiting = [gang for gang in self._gangs.values() if gang.waiting]
        if waiting and all(gang.ended for gang in self._gangs.values() if gang not in waiting):
            self._prune_workdir()
            waiting[-1].start(self.offer, now)
        return min(times, default=None)

    def quiet_at(self) -> float:
        """When there is time for what can wait; see `Gang.quiet_at`."""
        return max((gang.quiet_at for gang in self._gangs.values()), default=float("-inf"))

    def stop_all(self, now: float, grace_ms: int | None = None) -> None:
        for gang in self._gangs.values():
            gang.stop(now, grace_ms)

    def rank(self, pid: int) -> RankProcess | None:
        return next((r for g in self._gangs.values() for r in g.ranks if r.pid == pid and r.ended is None), None)

    def living(self) -> set[tuple[int, int]]:
        """(attempt, rank) of the processes that live."""
        return {
            (g.number, r.assignment.rank)
            for g in self._gangs.values()
            for r in g.ranks
            if r.pid is not None and r.ended is None
        }

    def look(self, attempt: int) -> tuple[LivingRank, ...]:
        """The attempt's ranks that live here, to be closed by the caller; none of an attempt that is not here.

        Raises OSError where the kernel lets us hold none.
        """
        gang = self._gangs.get(attempt)
        return tuple(seen for rank in gang.ranks if (seen := rank.look()) is not None) if gang else ()

    def reports(self, now: float) -> tuple[GangReport, ...]:
        return (*(gang.report(now) for gang in self._gangs.values()), *self._answers)

    def reported(self, reports: tuple[GangReport, ...]) -> bool:
        """The supervisor has this: an ended gang that no order names any more is forgotten. True if there was one."""
        ended = {report.number for report in reports if report.kind == TRAINING and report.state == "ended"}
        forgotten = [n for n, gang in self._gangs.items() if not gang.named and n in ended]
        for number in forgotten:
            del self._gangs[number]
        return bool(forgotten)

    def _meet(self, gang: GangOrder, wanted: int) -> None:
        """The order names a gang that does not live here."""
        if gang.command == "run" and gang.number > self.newest:
            if gang.number == wanted:
                self._accept(gang)
        elif gang.number < self.newest and gang.command == "run":
            reason = f"attempt {gang.number} is over: this node was ordered attempt {self.newest}"
            self._answers.append(GangReport(gang.kind, gang.number, "refused", reason=reason))
        else:
            self._answers.append(_gone(gang))

    def _accept(self, gang: GangOrder) -> None:
        try:
            _write_number(self._newest_file, gang.number)  # before anything starts: never started twice
        except OSError as error:
            reason = f"the attempt's number cannot be kept on this node: {error}"
            self._answers.append(GangReport(gang.kind, gang.number, "refused", reason=reason))
            return
        self.newest = gang.number
        self._gangs[gang.number] = Gang(gang, self._around)

    def _prune_workdir(self) -> None:
        kept_from = self.newest - KEPT_ATTEMPTS
        for path in self._around.workdir.iterdir():
            match = _ATTEMPT.fullmatch(path.name)
            if match and int(match.group(1)) <= kept_from:
                shutil.rmtree(path, ignore_errors=True)


def _unsupported(gang: GangOrder) -> GangReport:
    return GangReport(gang.kind[:100], gang.number, "unsupported", reason="this worker knows gangs of kind training")


def _gone(gang: GangOrder) -> GangReport:
    """A rank is started once per attempt; an attempt that is not here any more died with an earlier worker."""
    lost = ExitReport(None, None, False, 0, "this worker was restarted, and the ranks ended with the old one")
    ranks = tuple(RankReport(assignment.rank, "exited", exit=lost) for assignment in gang.ranks)
    return GangReport(gang.kind, gang.number, "ended", ranks, "it does not live on this node")


def _read_number(path: Path) -> int:
    try:
        return int(path.read_text(encoding="ascii"))
    except FileNotFoundError:
        return 0
    except ValueError:
        print(f"worker: {path} holds no attempt number; counting from the attempts in the directory", file=sys.stderr)
        found = [m for p in path.parent.iterdir() if (m := _ATTEMPT.fullmatch(p.name))]
        return max((int(match.group(1)) for match in found), default=0)


def _write_number(path: Path, number: int) -> None:
    temporary = path.with_name(path.name + ".new")
    with temporary.open("w", encoding="ascii") as file:
        file.write(f"{number}\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
