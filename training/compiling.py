"""Compiling ahead of the first step, and keeping the program: a restarted rank neither traces nor compiles.

The finished program lies in the cache directory, under a name made of all that determines it. Rank 0 compiles and tells
the others; those that cannot read its file compile, too. A program is code: the directory must be as trusted as the
sources.

JAX's own persistent cache is off. On CPU it serves rank 0 alone (its key holds a fingerprint of the topology that
differs between processes, and only process 0 writes), it needs the program traced first, and a program that came out of
it cannot be kept: serialised again it lacks kernels (all seen with jax 0.10.2).
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
from jax.experimental import serialize_executable
from jax.sharding import Mesh

from training.config import Config
from training.contract import Contract
from training.gang import hear_from_leader, tell_gang

# What device.compile means on CPU. Measured with jax 0.10.2 for configs/demo.yaml, four rows: CPU-seconds to compile
# and of one step are 14 and 0.07 with `best`, 6.5 and 0.07 with `fast`, 2.3 and 0.25 with `fastest`.
ON_CPU: dict[str, dict[str, bool | int]] = {
    "best": {},
    "fast": {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 1},
    "fastest": {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 0},
}
_UNKNOWN = re.compile(r"[Nn]o such compile option: '(\w+)'")
_PLACE = (
    "JAX_COORDINATOR_ADDRESS",
    "JAX_PARTITION_INDEX",
    "JAX_SLICE_INDEX",
    "JAX_COMPILATION_CACHE_DIR",
)  # no part of a program


@dataclass(frozen=True, slots=True)
class Compiler:
    """Compiles for one rank of one attempt."""

    config: Config
    contract: Contract
    mesh: Mesh

    def compile(self, name: str, function: Any, *shapes: Any) -> Any:
        """The program of a jitted `function` for arguments of these shapes and shardings; it accepts no others.

        Collective: every rank of the gang asks for the same names in the same order.
        """
        if self.contract.cache is None:
            return self._compile(function, shapes)
        path = self.contract.cache / "programs" / f"{name}-{self._key()}.bin"
        if self.contract.process_id != 0:
            hear_from_leader(f"program/{name}")
            return self._load(path) or self._compile(function, shapes)
        program = self._load(path)
        if program is None:
            program = self._compile(function, shapes)
            _store(path, program)
        tell_gang(f"program/{name}")
        return program

    def _compile(self, function: Any, shapes: tuple[Any, ...]) -> Any:
        return compile_lowered(function.lower(*shapes), self.config.device.compile)

    def _load(self, path: Path) -> Any | None:
        """The program in `path`; None where there is none, or one that is damaged or refused by this JAX."""
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            print(f"{path}: cannot be read ({error.strerror}), compiling again", file=sys.stderr, flush=True)
            return None
        if hashlib.sha256(content[32:]).digest() != content[:32]:
            print(f"{path}: damaged, compiling again", file=sys.stderr, flush=True)
            return None
        devices = list(self.mesh.devices.flat)
        try:
            return serialize_executable.deserialize_and_load(*pickle.loads(content[32:]), execution_devices=devices)
        except Exception as error:  # noqa: BLE001  whatever it is, compiling mends it
            print(f"{path}: refused ({error}), compiling again", file=sys.stderr, flush=True)
            return None

    def _key(self) -> str:
        """Of sources, versions, configuration, layout, device, and the variables that JAX and XLA read."""
        device = jax.devices()[0]
        determining = {
            "config": _compiled_in(self.config),
            "layout": asdict(self.contract.layout),
            "device": [device.platform, device.device_kind, _processor() if device.platform == "cpu" else ""],
            "versions": [sys.version, jax.__version__, jax.lib.__version__],
            "environment": _environment(os.environ),
            "sources": _sources(),
        }
        return hashlib.sha256(json.dumps(determining, sort_keys=True).encode()).hexdigest()[:32]


def _compiled_in(config: Config) -> dict[str, Any]:
    """The configuration without what only decides the program's inputs, or which programs run when."""
    inputs = {
        "": ("seed", "steps", "checkpoint", "evaluation"),
        "data": ("max_bytes", "heldout_every"),
        "optimizer": ("peak_rate", "warmup_steps", "floor_fraction"),
        "device": ("peak", "memory_bytes"),
    }
    sections = {"": asdict(config)}
    sections |= {name: sections[""][name] for name in inputs if name}
    for name, keys in inputs.items():
        for key in keys:
            del sections[name][key]
    return sections[""]


def compile_lowered(lowered: Any, how: str) -> Any:
    """The program, compiled as `device.compile: how` asks; an option that this XLA has not is left out, and said."""
    options = dict(ON_CPU[how]) if jax.default_backend() == "cpu" else {}
    while True:
        try:
            return lowered.compile(compiler_options=options)
        except jax.errors.JaxRuntimeError as error:
            unknown = _UNKNOWN.search(str(error))
            if unknown is None or options.pop(unknown[1], None) is None:
                raise
            print(f"device.compile: this XLA has no {unknown[1]}; compiling without", file=sys.stderr, flush=True)


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in environment.items() if name.startswith(("JAX_", "XLA_")) and name not in _PLACE
    }


def _sources() -> str:
    digest = hashlib.sha256()
    folder = Path(__file__).parent
    for path in sorted([*folder.glob("*.py"), *folder.glob("model/**/*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _processor() -> str:
    """What the processor can do: a program for another one may die of an illegal instruction."""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        lines = {line for line in file if line.startswith(("flags", "Features", "model name"))}
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def _store(path: Path, program: Any) -> None:
    """Write atomically, a checksum first. A full disk costs the next start its time, not this one its run."""
    payload = pickle.dumps(serialize_executable.serialize(program))
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(hashlib.sha256(payload).digest() + payload)
        unfinished.replace(path)
    except OSError as error:
        print(f"the compiled program is not kept ({error}); the next start compiles again", file=sys.stderr, flush=True)
