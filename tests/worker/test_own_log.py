"""A full disk takes the worker's own words and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from supervisor.worker.own_log import LossyStream


def test_words_that_a_full_disk_does_not_take_are_dropped() -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    try:
        print("worker: something is wrong \ud800", file=LossyStream(descriptor), flush=True)
    finally:
        os.close(descriptor)


def test_words_that_it_takes_are_there_at_once(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    print("worker: a\nb", file=LossyStream(descriptor))
    assert (tmp_path / "log").read_text() == "worker: a\nb\n"
    os.close(descriptor)
