"""Programs that are kept across restarts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from training.compiling import Compiler
from training.config import load_config
from training.contract import Contract, Layout
from training.mesh import everywhere, make_mesh


@pytest.fixture
def compiler(tmp_path: Path) -> Compiler:
    return Compiler(load_config("tiny"), Contract(cache=tmp_path), make_mesh(Layout(1, 1, 1), jax.devices()[:1]))


def traced(compiler: Compiler, factor: float = 2.0) -> tuple[bool, list[float]]:
    """Whether a program had to be traced, and what it computes for ones."""
    seen, one = [], everywhere(compiler.mesh)

    def function(x: jax.Array) -> jax.Array:
        seen.append(x)
        return x * factor

    program = compiler.compile("double", jax.jit(function), jax.ShapeDtypeStruct((3,), jnp.float32, sharding=one))
    return bool(seen), program(jax.device_put(jnp.ones(3, jnp.float32), one)).tolist()


def test_the_second_start_loads_the_program_of_the_first(compiler: Compiler) -> None:
    assert traced(compiler) == (True, [2.0] * 3)
    assert traced(compiler) == (False, [2.0] * 3)


def test_another_configuration_or_layout_is_another_program(compiler: Compiler, tmp_path: Path) -> None:
    traced(compiler)
    assert traced(replace(compiler, config=load_config("tiny", ("model.layers=1",))), 3.0) == (True, [3.0] * 3)
    assert traced(replace(compiler, config=load_config("tiny", ("steps=7", "seed=2"))), 3.0) == (False, [2.0] * 3)
    assert len(list(tmp_path.rglob("double-*.bin"))) == 2


@pytest.mark.parametrize("place", [5, 40, -1], ids=["in the checksum", "at the front", "at the end"])
def test_a_damaged_program_is_compiled_again(
    compiler: Compiler, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: int
) -> None:
    traced(compiler)
    (path,) = tmp_path.rglob("double-*.bin")
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    assert traced(compiler) == (True, [2.0] * 3)
    assert "damaged, compiling again" in capsys.readouterr().err
    assert traced(compiler) == (False, [2.0] * 3), "and kept anew"


def test_a_cache_that_cannot_be_written_costs_time_only(
    compiler: Compiler, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "programs").write_text("in the way")
    assert traced(compiler) == (True, [2.0] * 3)
    assert "is not kept" in capsys.readouterr().err
