"""What each node of the fleet does, in one word: for people, derived, never decided upon."""

from __future__ import annotations

from supervisor.core import budget
from supervisor.core.memory import Memory
from supervisor.core.observation import Observation
from supervisor.core.spec import Spec

NodeStates = tuple[tuple[str, str, str], ...]  # (name, rack, state)


def node_states(spec: Spec, memory: Memory, obs: Observation, now: int) -> NodeStates:
    """States: dead, set-aside, lost, training, spare, starting."""
    aside = budget.set_aside(memory.charges, spec.node_faults, now)
    placed = set(memory.attempt.placement.nodes) if memory.attempt else set()
    lost = set(memory.attempt.lost) if memory.attempt else set()
    connected = {worker.node for worker in obs.workers if worker.connected}

    def state(name: str, present: bool) -> str:
        if not present:
            return "dead"
        if name in aside:
            return "set-aside"
        if name in lost:
            return "lost"
        if name in placed:
            return "training"
        return "spare" if name in connected else "starting"

    return tuple((node.name, node.rack, state(node.name, node.present)) for node in obs.nodes)
