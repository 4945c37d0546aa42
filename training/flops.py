"""What one step costs, computed from the configuration alone. Imports neither JAX nor numpy."""

from __future__ import annotations

from dataclasses import dataclass

from training.config import Config, Model


@dataclass(frozen=True, slots=True)
class Parameters:
    """Numbers of parameters. `routed` are the experts' (spread over a rack), `replicated` are on every device."""

    routed: int
    replicated: int
    active: int  # in matrix products of one token: without embedding lookup and norms

    @property
    def total(self) -> int:
        return self.routed + self.replicated


def count_parameters(model: Model) -> Parameters:
    """Count from the shapes that `training.model` gives its arrays."""
    queries = model.width * model.heads * model.head_width
    keys = model.width * model.key_value_heads * model.head_width
    attention = 2 * queries + 2 * keys
    expert = 3 * model.width * model.expert_width  # SwiGLU: gate, up, down
    shared = model.shared_experts * expert
    router = model.width * model.experts
    norms = 2 * model.width
    table = model.vocabulary * model.width
    return Parameters(
        routed=model.layers * model.experts * expert,
        replicated=model.layers * (attention + shared + router + norms) + 2 * table + model.width,
        active=model.layers * (attention + shared + router + model.experts_per_token * expert) + table,
    )


def flops_per_token(config: Config) -> float:
    """Forward and backward FLOPs of one token, without rematerialisation: 6 N + 12 L H Q T.

    N = parameters that multiply the token (`active`), L layers, H heads, Q head width, T sequence length. Source: PaLM
    (arXiv 2204.02311), appendix B; like there, attention counts the full square, not its causal half. Slots that fixed
    capacity pads, norms, softmax and the optimizer are not counted.
    """
    model = config.model
    return (
        6.0 * count_parameters(model).active
        + 12.0 * model.layers * model.heads * model.head_width * config.data.sequence
    )
