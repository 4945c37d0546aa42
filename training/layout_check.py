"""Answers which layouts a configuration divides and fits into (the contract's MARIN_SUP_CHECK), without JAX or a
device.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from training.config import Config, ConfigError
from training.contract import Layout, parse_layout
from training.events import Events
from training.flops import count_parameters
from training.shares import Shares, share_out

CHECK_BYTES_MAX = 1 << 20
STATE_BYTES = 4 * 4  # a parameter in float32: itself, its gradient and Adam's two moments


@dataclass(frozen=True, slots=True)
class Fit:
    fits: bool
    microbatches: int | None
    memory_bytes: int | None  # estimate, of one device
    reason: str


def check_layout(config: Config, layout: Layout) -> Fit:
    """Judge one layout. Experts must divide over a rack, every rank must own a row, and the estimate must fit."""
    ranks, experts, batch = layout.ranks_per_rack, config.model.experts, config.data.global_batch
    if experts % ranks:
        return Fit(False, None, None, f"model.experts ({experts}) does not divide over the {ranks} ranks of a rack")
    if layout.ranks > batch:
        return Fit(
            False,
            None,
            None,
            f"{layout.ranks} ranks would share data.global_batch of {batch} rows; some would own none",
        )
    shares = share_out(config.data, layout.ranks)
    needed = estimate_memory(config, layout, shares)
    available = config.device.memory_bytes
    if available is not None and needed > available:
        reason = f"needs about {needed} bytes on each device, device.memory_bytes is {available}"
        return Fit(False, shares.microbatches, needed, reason)
    padding = layout.ranks * shares.microbatches * shares.rows - batch
    reason = f"{shares.microbatches} microbatches of {shares.rows} rows on each rank, {padding} rows of padding in all"
    return Fit(True, shares.microbatches, needed, reason)


def estimate_memory(config: Config, layout: Layout, shares: Shares) -> int:
    """Bytes of one device: parameters with gradients and moments, and the activations one microbatch keeps for its
    backward pass (an estimate: float32, attention scores kept, expert slots at full capacity)."""
    model, rows, sequence = config.model, shares.rows, config.data.sequence
    parameters = count_parameters(model)
    state = STATE_BYTES * (parameters.replicated + parameters.routed // layout.ranks_per_rack)
    tokens = rows * sequence
    slots = (
        config.dispatch.capacity_factor * model.experts_per_token
        if config.dispatch.kind == "all_to_all"
        else model.experts
    )
    attention = tokens * (4 * model.width + 2 * (model.heads + model.key_value_heads) * model.head_width)
    scores = 2 * rows * model.heads * sequence * sequence
    experts = tokens * (
        slots * (2 * model.width + 3 * model.expert_width) + model.shared_experts * 3 * model.expert_width
    )
    logits = 3 * tokens * model.vocabulary
    return int(state + 4 * (model.layers * (attention + scores + experts) + logits))


def answer_check(config: Config, path: Path, events: Events) -> bool:
    """Emit one `layout` event for each line of `path`; True when all fit. Raises ConfigError for an unusable file."""
    try:
        with path.open("rb") as file:
            text = file.read(CHECK_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"MARIN_SUP_CHECK: cannot read {path}: {error.strerror}") from error
    if len(text) > CHECK_BYTES_MAX:
        raise ConfigError(f"MARIN_SUP_CHECK: {path} is larger than {CHECK_BYTES_MAX} bytes")
    lines = enumerate(text.decode("utf-8", "replace").splitlines(), 1)
    layouts = [parse_layout(line, f"MARIN_SUP_CHECK ({path}), line {number}") for number, line in lines if line.strip()]
    if not layouts:
        raise ConfigError(f"MARIN_SUP_CHECK: {path} holds no layout; one JSON object a line is expected")
    fits = [(layout, check_layout(config, layout)) for layout in layouts]
    for layout, fit in fits:
        answer = {
            "fits": fit.fits,
            "microbatches": fit.microbatches,
            "memoryBytes": fit.memory_bytes,
            "reason": fit.reason,
        }
        events.emit({"event": "layout", "layout": layout.as_event(), **answer})
    return all(fit.fits for _, fit in fits)
