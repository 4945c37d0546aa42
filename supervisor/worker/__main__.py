"""`python -m supervisor.worker --node NAME --sync FILE --workdir DIR`"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from supervisor.worker.guard import guarded
from supervisor.worker.own_log import lose_what_is_not_taken


def main() -> int:
    parser = argparse.ArgumentParser(prog="marin-sup worker", description="The agent on one node.")
    parser.add_argument("--node", required=True, help="this node's name")
    parser.add_argument("--sync", required=True, type=Path, help="file with the supervisor's host, port and token")
    parser.add_argument("--workdir", required=True, type=Path, help="directory of this node's worker alone")
    arguments = parser.parse_args()
    workdir = arguments.workdir.absolute()
    try:
        workdir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--workdir: {error}")
    lose_what_is_not_taken()
    node, sync = arguments.node, arguments.sync.absolute()

    def agent() -> int:
        from supervisor.worker.agent import Settings, run_agent  # after the fork: the guard stays small

        return run_agent(Settings(node, sync, workdir))

    return guarded(agent)


if __name__ == "__main__":
    sys.exit(main())
