"""Faults that a rank brings upon itself because its control file asks for them.

Each sits in a function of its own, so that the stack of a rank that stands still names it.
"""

from __future__ import annotations

import threading
import time
from typing import NoReturn

from training.control import Requests
from training.events import Events


def inject(requests: Requests, step: int, events: Events) -> None:
    """Do what is asked before `step` is dispatched: raise RuntimeError, take longer, or never come back."""
    if requests.fail:
        raise RuntimeError(f"failed as asked through the control file, before step {step}")
    if requests.spin:
        spin_as_asked()
    if requests.slow_seconds:
        time.sleep(requests.slow_seconds)
    if requests.hang:
        events.emit({"event": "step", "step": step, "state": "entered"})  # as its peers say, who then wait for it
        hang_as_asked()


def hang_as_asked() -> NoReturn:
    """Blocks for ever, using no CPU: to its peers a rank that is stuck inside the step."""
    while True:
        threading.Event().wait()


def spin_as_asked() -> NoReturn:
    """Loops for ever in Python."""
    while True:
        pass
