"""Where the checks of a node, their catalogue, the node's agent and the burn-in belong.

May know `supervisor.wire`, to report; never the rest of the supervisor. JAX only for the burn-in. No check is written
yet.
"""
