"""A trainer that needs nothing but Python: it does, one after the other, what its arguments say.

emit JSON | raw TEXT | repeat N TEXT | huge N | print TEXT | flood BYTES | wait-file PATH | wait-control MEMBER
ignore-term | child | escape | exit CODE | die SIGNAL | raise TEXT | environ PATH | hang
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

SLEEPER = "import time\nwhile True: time.sleep(60)"


def write(text: str) -> None:
    with open(os.environ["MARIN_SUP_EVENTS"], "a", encoding="utf-8") as events:
        events.write(text)


def wait_for(condition: Callable[[], object]) -> None:
    while not condition():
        time.sleep(0.01)


def child(name: str, new_session: bool) -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", SLEEPER], start_new_session=new_session)
    print(f"{name} {process.pid}", flush=True)


def control() -> dict[str, int]:
    with open(os.environ["MARIN_SUP_CONTROL"], encoding="utf-8") as file:
        return dict(json.load(file))


def act(word: str, words: list[str]) -> None:
    if word == "emit":
        write(words.pop(0) + "\n")
    elif word == "raw":
        write(words.pop(0).encode().decode("unicode_escape"))
    elif word == "repeat":
        write(int(words.pop(0)) * (words.pop(0) + "\n"))
    elif word == "huge":
        write("x" * int(words.pop(0)))
    elif word == "print":
        print(words.pop(0).encode().decode("unicode_escape"), flush=True)
    elif word == "flood":
        left, block = int(words.pop(0)), b"garbage \x1b[31m\xff\x00" * 5000
        while left > 0:
            left -= os.write(1, block[:left])
    elif word == "wait-file":
        path = words.pop(0)
        wait_for(lambda: os.path.exists(path))
    elif word == "wait-control":
        member = words.pop(0)
        wait_for(lambda: control()[member])
    elif word == "ignore-term":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif word == "child":
        child("child", False)
    elif word == "escape":
        child("escaped", True)
    elif word == "exit":
        sys.exit(int(words.pop(0)))
    elif word == "die":
        os.kill(os.getpid(), int(words.pop(0)))
    elif word == "raise":
        raise ValueError(words.pop(0))
    elif word == "environ":
        with open(words.pop(0), "w", encoding="utf-8") as file:
            json.dump(dict(os.environ), file)
    elif word == "hang":
        wait_for(lambda: False)
    else:
        raise SystemExit(f"fake_trainer: unknown word {word}")


if __name__ == "__main__":
    words = sys.argv[1:]
    while words:
        act(words.pop(0), words)
