"""The first thing that runs in a rank: `python -m supervisor.worker.launcher FD PARENT`.

It ties the process to its worker, reads the assignment (JSON) from the descriptor FD, sets the environment, registers
our cluster environment for when JAX is imported, and then becomes the trainer. It imports nothing that the trainer
could miss or mind.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import runpy
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

from supervisor.wire import contract
from supervisor.worker.after_import import after_import
from supervisor.worker.descendants import set_death_signal
from supervisor.worker.peer_failure import peer_failure
from supervisor.worker.stacks import write_stacks_when_asked

LINGER_SECONDS = 10.0  # after a failure was said, how long atexit (JAX's shutdown barrier waits 300 s) may take


def main() -> NoReturn:
    descriptor, parent = int(sys.argv[1]), int(sys.argv[2])
    tie_to(parent)
    assignment = read_json(descriptor)
    set_environment(assignment["environment"])
    trainer = assignment["trainer"]
    if trainer["command"]:
        _exec(trainer["command"])
    prepare(assignment["root"], trainer["preload"])
    become(assignment)


def tie_to(parent: int) -> None:
    """Die with the worker."""
    set_death_signal(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(contract.EXIT_RESTART)  # it died before the death signal was set


def set_environment(environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)


def read_json(descriptor: int) -> Any:
    with os.fdopen(descriptor, "rb") as file:
        return json.load(file)


def prepare(root: str, preload: list[str]) -> None:
    """All that needs no assignment. The trainer's own packages win over ours, which lie in `root`."""
    _put_last(root)
    after_import("jax._src.clusters", _register_with_jax)
    after_import("jax._src.distributed", _wait_before_dialling)
    _preload(preload)


def become(assignment: dict[str, Any]) -> NoReturn:
    """Be that rank, in a process that is prepared."""
    set_environment(assignment["environment"])
    _show_stacks()
    _run(assignment["trainer"]["module"], assignment["trainer"]["args"])


def _put_last(root: str) -> None:
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if root in sys.path[1:] and root not in inherited:
        sys.path.remove(root)
        sys.path.append(root)


def _exec(command: list[str]) -> NoReturn:
    """The death signal stays in force across exec."""
    try:
        os.execvpe(command[0], command, os.environ)
    except OSError as error:
        refuse(f"trainer.command: {command[0]!r} cannot be started: {error.strerror}")


def _preload(modules: list[str]) -> None:
    for name in modules:
        if not _exists(name):
            refuse(f"trainer.preload: there is no module {name!r} for {sys.executable}")
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 (whatever the trainer raises ends this process)
            _fail(error)


def _run(module: str, arguments: list[str]) -> NoReturn:
    if not _exists(module):
        refuse(f"trainer.module: there is no module {module!r} for {sys.executable}")
    if _is_package(module) and not _exists(f"{module}.__main__"):
        refuse(f"trainer.module: {module!r} is a package without a __main__; name the module in it that trains")
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as exit:
        if exit.code not in (None, 0):
            _limit_the_rest(exit.code if isinstance(exit.code, int) else 1)
        raise
    except Exception as error:  # noqa: BLE001 (whatever the trainer raises ends this process)
        _fail(error)
    sys.exit(contract.EXIT_DONE)


def _exists(name: str) -> bool:
    """Whether `name` can be found. An error inside a parent package shows when it is imported, as any error does."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError as error:
        return error.name is None or not (name == error.name or name.startswith(error.name + "."))
    except Exception:  # noqa: BLE001 (a parent package that raises exists; its import will say so)
        return True


def _is_package(name: str) -> bool:
    try:
        found = importlib.util.find_spec(name)
    except Exception:  # noqa: BLE001 (its import will say so)
        return False
    return found is not None and found.submodule_search_locations is not None


def refuse(sentence: str) -> NoReturn:
    """A mistake in the manifest: say it and leave."""
    print(f"marin-sup: {sentence}", file=sys.stderr, flush=True)
    os._exit(contract.EXIT_CONFIG)


def _fail(error: BaseException) -> NoReturn:
    """Say what happened and leave at once: atexit might wait for peers that wait for us."""
    traceback.print_exception(type(error), error, error.__traceback__)
    reason = peer_failure(error)
    if reason is not None:
        _alarm({"event": "alarm", "kind": "peer-failed", "message": reason, "time": time.time()})
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(contract.EXIT_PROGRAM if reason is None else contract.EXIT_RESTART)


def _alarm(event: dict[str, Any]) -> None:
    try:
        pipe = os.open(os.environ[contract.ENV_EVENTS], os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
        os.write(pipe, json.dumps(event).encode() + b"\n")
        os.close(pipe)
    except (OSError, KeyError) as error:
        print(f"marin-sup: the peer's failure could not be reported: {error!r}", file=sys.stderr)


def _limit_the_rest(code: int) -> None:
    """The exit code is settled; only what runs at exit may still block, and that is given a bound."""

    def leave() -> None:
        time.sleep(LINGER_SECONDS)
        print(f"marin-sup: the exit was still blocked after {LINGER_SECONDS:.0f} s, leaving", file=sys.stderr)
        sys.stderr.flush()
        os._exit(code & 0xFF)

    threading.Thread(target=leave, name="marin-sup-exit", daemon=True).start()


def _show_stacks() -> None:
    try:
        write_stacks_when_asked(contract.RankPaths(Path(os.environ[contract.ENV_EVENTS]).parent))
    except (OSError, KeyError) as error:
        print(f"marin-sup: should this rank hang, it will show no Python stack: {error!r}", file=sys.stderr)


def _register_with_jax() -> None:
    try:
        from supervisor.worker.jax_cluster import register

        register()
    except (ImportError, AttributeError) as error:
        print(
            "marin-sup: this JAX has changed its cluster environments, jax.distributed.initialize() needs its "
            f"arguments: {error}",
            file=sys.stderr,
        )


def _wait_before_dialling() -> None:
    try:
        from supervisor.worker.jax_cluster import wait_before_dialling

        wait_before_dialling()
    except (ImportError, AttributeError) as error:
        print(
            f"marin-sup: this JAX has changed how it initialises; ranks may wait a second for the coordinator: {error}",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main()
