"""What to do with stdout once nobody reads it any more."""

from __future__ import annotations

import os
import sys


def silence_stdout() -> None:
    """Nothing more can be written; what is still buffered must not fail when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
