"""The trainer's command: `python -m training.train --config NAME [--data PATH ...] [--set section.key=value ...]`.

The thin edge around `training.loop`: arguments, environment, exit codes. JAX is imported inside, after the rank has
said so.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

from training.config import Config, ConfigError, load_config
from training.contract import Contract, parse_contract
from training.data import Batches, open_batches
from training.events import Events
from training.layout_check import answer_check
from training.outcome import BAD_CONFIG, DONE, RESTART_ME, Outcome, judge


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message}\n{self.format_usage().strip()}")


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run one rank and exit with a code of the trainer contract."""
    events = Events(None)
    try:
        events = _open_events()
        code = _run(sys.argv[1:] if arguments is None else arguments, events)
    except Exception as error:  # noqa: BLE001  every way out is judged in one place
        code = _fail(judge(error), events)
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: JAX would wait at exit for ranks that may be dead. After success the gang has left together already.
    os._exit(code)


def _open_events() -> Events:
    path = os.environ.get("MARIN_SUP_EVENTS")
    try:
        return Events(Path(path) if path else None)
    except OSError as error:
        raise ConfigError(f"MARIN_SUP_EVENTS: cannot open {path}: {error.strerror}") from error


def _run(arguments: list[str], events: Events) -> int:
    check = os.environ.get("MARIN_SUP_CHECK")
    if check:
        config, _ = _parse(arguments)
        return DONE if answer_check(config, Path(check), events) else BAD_CONFIG
    events.phase("import")
    config, data = _parse(arguments)
    contract = parse_contract(os.environ)
    return _train(config, contract, open_batches(data, config.data, config.seed), events)


def _train(config: Config, contract: Contract, batches: Batches, events: Events) -> int:
    from training.loop import Ending, Job, run  # imports JAX: not before bad input had its answer

    ending = run(Job(config, contract, batches, events))
    events.phase("exit", ending.value)
    return DONE if ending is Ending.FINISHED else RESTART_ME


def _parse(arguments: list[str]) -> tuple[Config, tuple[Path, ...]]:
    parser = _Parser(
        prog="python -m training.train", description="Train a mixture-of-experts model; one rank of a gang, or alone."
    )
    parser.add_argument("--config", required=True, help="a named configuration (demo, tiny) or the path of a YAML file")
    parser.add_argument(
        "--data", nargs="+", type=Path, default=[], help="text files or folders (default: Python's own sources)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="change one field; may be repeated"
    )
    parsed = parser.parse_args(arguments)
    return load_config(parsed.config, tuple(parsed.set)), tuple(parsed.data)


def _fail(outcome: Outcome, events: Events) -> int:
    print(outcome.message, file=sys.stderr, flush=True)
    if outcome.alarm is not None:
        events.alarm(outcome.alarm, outcome.message, outcome.attempt, outcome.step)
    events.phase("exit", outcome.message)
    return outcome.code


if __name__ == "__main__":
    main()
