"""The trainer's one configuration: a YAML file parsed once into frozen values. Imports neither JAX nor numpy.

Every mistake is reported at once, one line each: path of the field, what was found, what is allowed, the nearest known
name.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import yaml

CONFIG_BYTES_MAX = 1 << 20


class ConfigError(Exception):
    """The configuration cannot be used; the message says where and what to do. Exit code 78."""


@dataclass(frozen=True, slots=True)
class AtLeast:
    low: float


@dataclass(frozen=True, slots=True)
class Within:
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class OneOf:
    names: tuple[str, ...]


Count = Annotated[int, AtLeast(1)]
WholeNumber = Annotated[int, AtLeast(0)]
Share = Annotated[float, Within(0.0, 1.0)]
NotNegative = Annotated[float, AtLeast(0.0)]
Positive = Annotated[float, AtLeast(1e-30)]


@dataclass(frozen=True, slots=True)
class Model:
    """All that must agree for a checkpoint to be loadable; nothing else."""

    width: Count
    layers: Count
    heads: Count
    key_value_heads: Count
    head_width: Annotated[int, AtLeast(2)]
    experts: Count
    experts_per_token: Count
    expert_width: Count
    shared_experts: WholeNumber = 1
    vocabulary: Annotated[int, AtLeast(256)] = 256  # tokens are bytes
    rope_base: Positive = 10000.0
    norm_epsilon: Positive = 1e-6


@dataclass(frozen=True, slots=True)
class Dispatch:
    """How tokens reach their experts. Slots per expert and source rank = capacity_factor x its even share."""

    kind: Annotated[str, OneOf(("all_to_all", "dense"))] = "all_to_all"
    capacity_factor: Positive = 2.0
    balance_rate: NotNegative = 0.01  # step of the router's bias toward even load, per update


@dataclass(frozen=True, slots=True)
class Data:
    sequence: Count
    global_batch: Count  # rows of one step, the same on every layout
    rows_per_microbatch: Count  # what one rank computes at a time
    max_bytes: Count = 64_000_000
    heldout_every: Annotated[int, AtLeast(2)] = 20  # every n-th window is held out


@dataclass(frozen=True, slots=True)
class Optimizer:
    peak_rate: Positive
    warmup_steps: WholeNumber
    floor_fraction: Share = 0.1
    beta1: Share = 0.9
    beta2: Share = 0.95
    epsilon: Positive = 1e-8
    weight_decay: NotNegative = 0.1
    clip_norm: Positive = 1.0


@dataclass(frozen=True, slots=True)
class Checkpoint:
    every_steps: Count = 100


@dataclass(frozen=True, slots=True)
class Evaluation:
    every_steps: Count = 100
    batches: Count = 1  # global batches of held-out windows


@dataclass(frozen=True, slots=True)
class Device:
    peak: Positive | Annotated[str, OneOf(("measure",))] | None = None  # FLOP/s of one device; null: unknown
    compile: Annotated[str, OneOf(("best", "fast", "fastest"))] = "best"  # the trade on CPU: training.compiling
    memory_bytes: Count | None = None  # refuse layouts that need more; null: no bound


@dataclass(frozen=True, slots=True)
class Config:
    model: Model
    data: Data
    optimizer: Optimizer
    steps: Count  # where the plan sets no token budget
    seed: WholeNumber = 0
    dispatch: Dispatch = field(default_factory=Dispatch)
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    evaluation: Evaluation = field(default_factory=Evaluation)
    device: Device = field(default_factory=Device)

    @property
    def tokens_per_step(self) -> int:
        """True tokens of one global batch; every row predicts `sequence` tokens."""
        return self.data.global_batch * self.data.sequence


def load_config(name: str, settings: tuple[str, ...] = ()) -> Config:
    """Read a named config of this package, or a path, and apply `section.key=value` settings. Raises ConfigError."""
    tree = _read(name)
    for setting in settings:
        _apply(tree, setting)
    problems: list[str] = []
    config = _build(Config, tree, "", problems)
    if not problems:
        problems = _contradictions(config)
    if problems:
        raise ConfigError("\n".join(f"{name}: {problem}" for problem in problems))
    return config


def _read(name: str) -> dict[str, Any]:
    folder = Path(__file__).parent / "configs"
    named = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    path = named.get(name, Path(name))
    try:
        with path.open("rb") as file:
            text = file.read(CONFIG_BYTES_MAX + 1)
    except OSError as error:
        near = "".join(f"; did you mean {n!r}?" for n in get_close_matches(name, named, 1))
        raise ConfigError(
            f"--config {name}: cannot read {path} ({error.strerror}); named configs: {', '.join(named)}{near}"
        ) from error
    if len(text) > CONFIG_BYTES_MAX:
        raise ConfigError(f"--config {name}: larger than {CONFIG_BYTES_MAX} bytes")
    try:
        tree = yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"--config {name}: not YAML: {error}") from error
    if not isinstance(tree, dict):
        raise ConfigError(
            f"--config {name}: found {_show(tree)}, allowed a mapping with {', '.join(f.name for f in fields(Config))}"
        )
    return tree


def _apply(tree: dict[str, Any], setting: str) -> None:
    path, equals, text = setting.partition("=")
    if not (equals and path):
        raise ConfigError(f"--set {setting}: allowed SECTION.KEY=VALUE, for example optimizer.peak_rate=0.001")
    *sections, key = path.split(".")
    for section in sections:
        tree = tree.setdefault(section, {})
        if not isinstance(tree, dict):
            raise ConfigError(f"--set {setting}: {section} is not a section")
    try:
        tree[key] = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"--set {setting}: the value is not YAML: {error}") from error


def _build(kind: Any, tree: Any, path: str, problems: list[str]) -> Any:
    """Make a `kind` of `tree`; mistakes are added to `problems`, and then the result is not to be used."""
    if not isinstance(tree, dict):
        problems.append(
            f"{path}: found {_show(tree)}, allowed a mapping with {', '.join(f.name for f in fields(kind))}"
        )
        return None
    prefix = f"{path}." if path else ""
    known = {f.name: f for f in fields(kind)}
    for name in tree:
        if name not in known:
            near = get_close_matches(str(name), known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
            problems.append(f"{prefix}{str(name)[:80]}: no such field; {hint}")
    hints = get_type_hints(kind, include_extras=True)
    values: dict[str, Any] = {}
    for name, known_field in known.items():
        if name in tree:
            values[name] = _value(hints[name], tree[name], prefix + name, problems)
        elif known_field.default is MISSING and known_field.default_factory is MISSING:
            problems.append(f"{prefix}{name}: missing, allowed {_allowed(hints[name])}")
    return None if problems else kind(**values)


def _value(hint: Any, found: Any, path: str, problems: list[str]) -> Any:
    if is_dataclass(hint):
        return _build(hint, found, path, problems)
    for choice in _choices(hint):
        if _fits(choice, found):
            return float(found) if _base(choice) is float else found
    near = get_close_matches(str(found), [n for c in _choices(hint) for n in _names(c)], 1)
    problems.append(
        f"{path}: found {_show(found)}, allowed {_allowed(hint)}" + "".join(f"; did you mean {n!r}?" for n in near)
    )
    return None


def _choices(hint: Any) -> tuple[Any, ...]:
    return (hint,) if get_origin(hint) is Annotated or not get_args(hint) else get_args(hint)


def _base(choice: Any) -> Any:
    return get_args(choice)[0] if get_origin(choice) is Annotated else choice


def _names(choice: Any) -> tuple[str, ...]:
    return tuple(n for bound in get_args(choice)[1:] if isinstance(bound, OneOf) for n in bound.names)


def _fits(choice: Any, found: Any) -> bool:
    base = _base(choice)
    if base is type(None):
        return found is None
    if isinstance(found, bool) or not isinstance(found, (int, float) if base is float else base):
        return False
    for bound in get_args(choice)[1:]:
        match bound:
            case AtLeast(low) if not low <= found < float("inf"):
                return False
            case Within(low, high) if not low <= found <= high:
                return False
            case OneOf(names) if found not in names:
                return False
    return True


def _allowed(hint: Any) -> str:
    if is_dataclass(hint):
        return f"a mapping with {', '.join(f.name for f in fields(hint))}"
    return " or ".join(_describe(choice) for choice in _choices(hint))


def _describe(choice: Any) -> str:
    base = _base(choice)
    if base is type(None):
        return "null"
    noun = {int: "an integer", float: "a number", str: "a text"}[base]
    for bound in get_args(choice)[1:]:
        match bound:
            case OneOf(names):
                return " or ".join(names)
            case Within(low, high):
                return f"{noun} from {low:g} to {high:g}"
            case AtLeast(low) if base is float:
                return f"{noun} {'of at least 0' if low == 0 else 'above 0'}"
            case AtLeast(low):
                return f"{noun} of at least {low:g}"
    return noun


def _show(found: Any) -> str:
    text = repr(found)
    return text if len(text) <= 80 else text[:77] + "..."


def _contradictions(config: Config) -> list[str]:
    """Fields that are right alone and wrong together."""
    model = config.model
    rules = (
        (
            model.heads % model.key_value_heads,
            f"model.key_value_heads: found {model.key_value_heads}, allowed a divisor of model.heads ({model.heads})",
        ),
        (
            model.head_width % 2,
            f"model.head_width: found {model.head_width}, allowed an even number (RoPE turns pairs)",
        ),
        (
            model.experts_per_token > model.experts,
            f"model.experts_per_token: found {model.experts_per_token}, allowed up to model.experts ({model.experts})",
        ),
    )
    return [message for broken, message in rules if broken]
