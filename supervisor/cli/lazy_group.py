"""A group of commands that are imported when they are called, and groups that other packages add by entry point."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

ENTRY_POINTS = "marin_sup.commands"


class LazyGroup(click.Group):
    """`commands_by_name`: name -> (where, one line of help); where is `module:attribute`.

    The help line stands here and not in the module, so that `--help` imports no command at all.
    """

    def __init__(self, *arguments: Any, commands_by_name: dict[str, tuple[str, str]], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.commands_by_name = commands_by_name

    def list_commands(self, context: click.Context) -> list[str]:
        return [*self.commands_by_name, *sorted(set(_added()) - set(self.commands_by_name))]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name in self.commands_by_name:
            module, _, attribute = self.commands_by_name[name][0].partition(":")
            command: click.Command = getattr(import_module(module), attribute)
            return command
        entry = _added().get(name)
        if entry is None:
            return None
        loaded: click.Command = entry.load()
        return loaded

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, text) for name, (_, text) in self.commands_by_name.items()]
        for name in sorted(set(_added()) - set(self.commands_by_name)):
            command = self.get_command(context, name)
            rows.append((name, command.get_short_help_str(60) if command else ""))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _added() -> dict[str, Any]:
    from importlib.metadata import entry_points  # some hundredths of a second, and not needed for our own commands

    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
