"""The supervisor's own log: what happened, in a line each, and bounded."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path

from supervisor.local.supervise import LOG_BYTES
from tests.local.run_process import running
from tests.local.test_a_run_and_its_people import SLOW, scripted


def test_a_run_logs_its_notes_and_incidents_and_a_terminal_that_goes(tmp_path: Path) -> None:
    with running(tmp_path, scripted(*SLOW), "--chaos", "fail-rank 0 @step 3") as run:
        told = run.directory / "supervisor.log"
        run.until(lambda: told.exists() and "i0001 is recovered" in told.read_text(), "the incident is logged")
        assert run.process is not None
        os.kill(run.process.pid, signal.SIGHUP)
        assert run.wait(30) == -signal.SIGHUP
        assert run.worker_pids(), "the run trains on"
        lines = told.read_text().splitlines()
    assert [line for line in lines if "AttemptStarted: attempt 1" in line]
    assert [line for line in lines if "the terminal is gone; the run trains on; marin-sup run or resume" in line]
    assert "Traceback" not in "\n".join(lines)


def test_the_log_is_bounded(tmp_path: Path) -> None:
    from supervisor.local.rundir import RunDirectory
    from supervisor.local.supervise import _log_file

    directory = RunDirectory(tmp_path)
    with _log_file(directory):
        for _ in range(3 * LOG_BYTES // 60_000):
            logging.getLogger("supervisor.test").info("x" * 60_000)
    sizes = [path.stat().st_size for path in tmp_path.glob("supervisor.log*")]
    assert len(sizes) == 2
    assert max(sizes) <= LOG_BYTES
