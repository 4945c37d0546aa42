"""Compiling ahead of the first step: one program for fresh and resumed runs, and the time it takes."""

from __future__ import annotations

import sys
from typing import Any

import jax

# Measured with jax 0.10.2 on 2 cores for configs/tiny.yaml: 3.0 s instead of 9.5 s. Matrix products are library calls either way.
FAST_ON_CPU = {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 1}


def compile_ahead(function: Any, *shapes: Any, how: str) -> Any:
    """Compile a jitted function for arguments of these shapes and shardings; the result accepts no others.

    `how` is device.compile of the configuration; `fast` means something on CPU alone.
    """
    lowered = function.lower(*shapes)
    if how != "fast" or jax.default_backend() != "cpu":
        return lowered.compile()
    try:
        return lowered.compile(compiler_options=FAST_ON_CPU)
    except jax.errors.JaxRuntimeError as error:
        if "option" not in str(error):
            raise
        print(f"device.compile: fast is unknown to this XLA ({error}); compiling as for `best`", file=sys.stderr, flush=True)
        return lowered.compile()
