"""What to run on every rank."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from supervisor.api.rules import Rule, exactly_one_of, unique
from supervisor.api.section import Argument, Effect, ModuleName, Path, Section, Text, VariableName, described

RESERVED_PREFIX = "MARIN_SUP_"
RESERVED_NAMES = ("JAX_COORDINATOR_ADDRESS", "JAX_PARTITION_INDEX")


def _not_ours(name: str) -> str | None:
    if not isinstance(name, str) or not (name.startswith(RESERVED_PREFIX) or name in RESERVED_NAMES):
        return None
    return (
        f"found {name[:100]}, which the supervisor sets itself; allowed names that do not begin with {RESERVED_PREFIX} "
        f"and are not {' or '.join(RESERVED_NAMES)}"
    )


class Variable(Section):
    """One environment variable."""

    rules = (
        Rule(
            "name",
            ("name",),
            f"!self.name.startsWith('{RESERVED_PREFIX}') && !(self.name in {list(RESERVED_NAMES)})",
            _not_ours,
        ),
    )

    name: VariableName = described(
        f"Name of the variable. Names that begin with {RESERVED_PREFIX}, {RESERVED_NAMES[0]} and {RESERVED_NAMES[1]} "
        "belong to the supervisor.",
        Effect.NEXT_ATTEMPT,
    )
    value: Text = described("Its value; no references are expanded.", Effect.NEXT_ATTEMPT, "")


def _warm_needs_module(preload: tuple[str, ...], module: str | None) -> str | None:
    if not preload or module is not None:
        return None
    return "found modules to import ahead of a command, allowed only with module (a command always starts cold)"


class Trainer(Section):
    """The program of a rank: a Python module, which may start warm, or any command, which starts cold."""

    rules = (
        exactly_one_of("module", "command"),
        Rule(
            "preload",
            ("preload", "module"),
            "!has(self.preload) || self.preload.size() == 0 || has(self.module)",
            _warm_needs_module,
        ),
        unique("env", "name"),
    )

    module: ModuleName | None = described("Python module to run as the main program.", Effect.NEXT_ATTEMPT, None)
    command: Annotated[tuple[Argument, ...], Field(min_length=1, max_length=256)] | None = described(
        "Program and its first arguments, run without a shell.", Effect.NEXT_ATTEMPT, None
    )
    args: Annotated[tuple[Argument, ...], Field(max_length=256)] = described(
        "Arguments for the module, or further ones for the command.", Effect.NEXT_ATTEMPT, ()
    )
    preload: Annotated[tuple[ModuleName, ...], Field(max_length=64)] = described(
        "Modules that a standby interpreter imports ahead of time. They must touch no device when imported.",
        Effect.NEXT_ATTEMPT,
        (),
    )
    env: Annotated[tuple[Variable, ...], Field(max_length=256)] = described(
        "Environment variables of every rank.", Effect.NEXT_ATTEMPT, ()
    )
    working_directory: Path | None = described(
        "Directory that ranks start in. On one machine, left out it is where `marin-sup run` was called.",
        Effect.NEXT_ATTEMPT,
        None,
    )
    prepare_ahead: Literal["Auto", "Off"] = described(
        "Auto: while training goes on, the trainer is asked, at low priority, to compile its programs for the other "
        "allowed layouts. Off: it is not asked, and a reshard waits for the compiler.",
        Effect.AT_ONCE,
        "Auto",
    )
    layout_check: Literal["Auto", "Off"] = described(
        "Auto: before attempt 1 the trainer is asked whether it fits every layout from minRacks to racks; one that "
        "does not know the question is accepted unchecked. Off: it is not asked.",
        Effect.REFUSED,
        "Auto",
    )
