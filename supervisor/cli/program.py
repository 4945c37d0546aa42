"""How this command is typed, for sentences that suggest another one."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

NAME = "marin-sup"


def program_typed(called: str, on_path: str | None, here: Path) -> str:
    """`marin-sup` where the shell finds it, or where this is another program (a module, a test); else its path.

    `called`: the first word of the command line. `on_path`: what the shell finds under our name.
    """
    path = Path(called)
    if on_path is not None or path.name != NAME:
        return NAME
    absolute = here / path
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else str(absolute)


# Once, at the start: commands change the working directory, the user's shell does not.
PROGRAM = program_typed(sys.argv[0], shutil.which(NAME), Path(os.getcwd()))
