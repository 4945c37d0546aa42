"""Joining JAX's coordinator: `jax.distributed.initialize()` works without arguments, and dials at the right moment.

The one file that imports JAX, loaded inside a rank once JAX itself was imported. JAX takes the first environment in its
list that is present, and its Kubernetes one would win on a cluster, so ours goes to the front
(`jax/_src/clusters/cluster.py`, the same in 0.10.2 and 0.12.0). JAX has no public way to register one.
"""

from __future__ import annotations

import functools
import json
import os
from typing import Any

from jax._src.clusters import ClusterEnv

from supervisor.wire import contract
from supervisor.worker.coordinator import wait_until_listening


class MarinSupCluster(ClusterEnv):  # type: ignore[no-untyped-call]
    name = "marin-sup"

    @classmethod
    def is_env_present(cls) -> bool:
        return contract.ENV_CONTRACT in os.environ and contract.ENV_NUM_PROCESSES in os.environ

    @classmethod
    def get_coordinator_address(cls, timeout_secs: int | None, override_coordinator_port: str | None = None) -> str:
        return os.environ[contract.ENV_COORDINATOR]

    @classmethod
    def get_process_count(cls) -> int:
        return int(os.environ[contract.ENV_NUM_PROCESSES])

    @classmethod
    def get_process_id(cls) -> int:
        return int(os.environ[contract.ENV_PROCESS_ID])

    @classmethod
    def get_local_process_id(cls) -> int | None:
        """The rank's one device where a node has several ranks; None lets the only rank see them all.

        Where each of several ranks is to have several, JAX_LOCAL_DEVICE_IDS in the environment comes before this.
        """
        ranks_per_node = json.loads(os.environ[contract.ENV_LAYOUT])["ranksPerNode"]
        return int(os.environ[contract.ENV_SLOT]) if ranks_per_node > 1 else None


def register() -> None:
    """Put ours first. Raises AttributeError when JAX has no such list any more."""
    known = ClusterEnv._cluster_types
    known.remove(MarinSupCluster)
    known.insert(0, MarinSupCluster)


def wait_before_dialling() -> None:
    """Make `jax.distributed.initialize`, with arguments or without, wait until the coordinator listens.

    A connection that is refused once is tried again after a whole second (gRPC's first backoff). Raises AttributeError
    when JAX has no such class any more.
    """
    from jax._src.distributed import State

    dial = State.initialize

    @functools.wraps(dial)
    def initialize(
        self: Any, coordinator_address: str | None = None, *arguments: Any, process_id: int | None = None, **named: Any
    ) -> Any:
        position = arguments[1] if len(arguments) > 1 else process_id
        rank = position if position is not None else int(os.environ.get(contract.ENV_PROCESS_ID, "0"))
        address = coordinator_address or os.environ.get(contract.ENV_COORDINATOR)
        if rank != 0 and address:
            wait_until_listening(address)
        if len(arguments) <= 1:
            named["process_id"] = process_id
        return dial(self, coordinator_address, *arguments, **named)

    State.initialize = initialize  # type: ignore[method-assign]
