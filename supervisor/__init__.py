"""marin-sup: a cluster-aware, fault-tolerant supervisor for large JAX training runs."""

__version__ = "0.1.0"
