"""The command line itself: the list of commands, and what happens when one ends badly."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from supervisor.cli.exit_codes import MEANINGS, CommandError, ExitCode
from supervisor.cli.lazy_group import LazyGroup
from supervisor.cli.silence import silence_stdout

_HERE = "supervisor.cli.commands"
COMMANDS: dict[str, tuple[str, str]] = {
    "run": (f"{_HERE}.run:run", "Start a run on this machine, or continue it."),
    "status": (f"{_HERE}.status:status", "Show where runs stand."),
    "explain": (f"{_HERE}.explain:explain", "Tell the last decision: what was seen, concluded and done."),
    "incidents": (f"{_HERE}.incidents:incidents", "List losses of progress: cause, action and cost."),
    "logs": (f"{_HERE}.logs:logs", "Print what the ranks wrote."),
    "checkpoint": (f"{_HERE}.checkpoint:checkpoint", "Save a checkpoint now."),
    "stop": (f"{_HERE}.stop:stop", "Save and suspend a run."),
    "resume": (f"{_HERE}.resume:resume", "Continue a held or suspended run."),
    "chaos": (f"{_HERE}.chaos:chaos", "Break something on purpose."),
    "demo": (f"{_HERE}.demo:demo", "Train a small model through a lost node and a lost rack."),
}


class _Commands(LazyGroup):
    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), meaning) for code, meaning in MEANINGS.items()])
        formatter.write_paragraph()
        formatter.write_text(
            "RUN is the name of a run below ./runs (or below $MARIN_SUP_RUNS), or the path of a run's directory. "
            "NO_COLOR switches colours off."
        )


@click.group(
    cls=_Commands,
    commands_by_name=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="marin-sup", prog_name="marin-sup")
def cli() -> None:
    """Supervise large JAX training runs: see faults, recover, and account for every second."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit. Nobody ever sees a traceback, unless MARIN_SUP_DEBUG=1 asks for it."""
    code = run_command(sys.argv[1:] if arguments is None else list(arguments))
    try:
        sys.stdout.flush()
    except OSError:
        silence_stdout()
    sys.exit(code)


def run_command(arguments: list[str]) -> int:
    """The exit code of one command; what is to be said is on stdout and stderr by then."""
    try:
        result: Any = cli.main(arguments, prog_name="marin-sup", standalone_mode=False)
        return result if isinstance(result, int) else ExitCode.OK
    except click.exceptions.Abort:
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        return _complain(error)
    except SystemExit:  # click's word for a reader that has gone away (`| head`): it has had enough
        silence_stdout()
        return ExitCode.OK
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"marin-sup: {where}{error.strerror or error}", err=True)
        return ExitCode.NOT_FOUND
    except Exception as error:  # the last line of defence between a fault of ours and a person
        if os.environ.get("MARIN_SUP_DEBUG") == "1":
            raise
        click.echo(
            f"marin-sup: a fault of marin-sup itself: {type(error).__name__}: {error}\n"
            "please report it with what MARIN_SUP_DEBUG=1 shows",
            err=True,
        )
        return ExitCode.INTERNAL


def _complain(error: click.ClickException) -> int:
    if isinstance(error, click.UsageError):
        error.show()
        return error.exit_code
    for line in error.format_message().splitlines():
        click.echo(f"marin-sup: {line}" if not line.startswith(" ") else line, err=True)
    return error.code if isinstance(error, CommandError) else error.exit_code
