"""A fault of a gang is one event: everything that was seen of it, followers and root together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from supervisor.core.observation import Alarm, Exit
from supervisor.core.placement import Placement
from supervisor.core.verdict import Verdict

# What a rank says when it died because another did. Sources: the texts of JAX's coordination service and of gloo
# as seen on JAX 0.10 to 0.12 (a peer killed, rank 0 killed, a connection reset in a collective).
FOLLOWER_WORDS = (
    "connection closed by peer",
    "connection reset by peer",
    "broken pipe",
    "coordination service",
    "coordination_service",
    "socket closed",
    "gloo/transport",  # not "gloo" alone: it greets every healthy gang by that name
    "another task died",
)


@dataclass(frozen=True, slots=True)
class RankExit:
    rank: int
    node: str
    exit: Exit
    alarms: tuple[Alarm, ...] = ()

    def alarm(self, kind: str) -> Alarm | None:
        return next((alarm for alarm in self.alarms if alarm.kind == kind), None)

    @property
    def is_follower(self) -> bool:
        """It died because a peer did, or because we stopped it: never a root."""
        if self.exit.by_us or self.alarm("peer-failed"):
            return True
        aborted = self.exit.signal == 6 or self.exit.code in (1, 70, 74, 75, 134)
        words = self.exit.last_words.lower()
        return aborted and any(phrase in words for phrase in FOLLOWER_WORDS)


@dataclass(frozen=True)
class GangFault:
    """`lost` nodes have no worker that syncs; `restarted` nodes have a new worker that knows nothing of the gang.

    `refusals`: (node, why) of workers that would not start their share. `hang`: what was concluded while the ranks
    still lived; all of their exits are our doing then.
    """

    placement: Placement
    exits: tuple[RankExit, ...] = ()
    lost: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    refusals: tuple[tuple[str, str], ...] = ()
    start_deadline_passed: bool = False
    step: int = 0
    total_steps: int | None = None
    hang: Verdict | None = None

    @cached_property
    def roots(self) -> tuple[RankExit, ...]:
        """Exits that are nobody's follower, the earliest first."""
        return tuple(sorted((e for e in self.exits if not e.is_follower), key=lambda e: e.exit.at_ms))

    @property
    def followers(self) -> int:
        """How many exits followed another."""
        return len(self.exits) - len(self.roots)
