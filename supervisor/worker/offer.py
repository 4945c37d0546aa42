"""The coordinator's port: held for the next attempt, so that the address in an order is free when rank 0 wants it."""

from __future__ import annotations

import socket


class PortOffer:
    """A socket that is bound and does not listen: the kernel gives its port to nobody else."""

    def __init__(self) -> None:
        self._held = _bound()

    @property
    def port(self) -> int:
        port: int = self._held.getsockname()[1]
        return port

    def address(self, host: str) -> str:
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    def give_up(self, coordinator: str) -> None:
        """Free the port if `coordinator` (host:port) means it, just before rank 0 binds it, and hold another one."""
        if coordinator.rpartition(":")[2] != str(self.port):
            return
        following = _bound()  # before the old one is freed, so that it is never the same
        self._held.close()
        self._held = following


def _bound() -> socket.socket:
    if socket.has_dualstack_ipv6():
        held = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        try:
            held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            held.bind(("::", 0))  # JAX binds [::] as well
            return held
        except OSError:  # IPv6 is compiled in but switched off
            held.close()
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    held.bind(("0.0.0.0", 0))
    return held
