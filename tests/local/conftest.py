"""Runs that several tests compare with, made once."""

from __future__ import annotations

import pytest

from tests.local.killable import STEPS, killable
from tests.local.run_process import running


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> dict[int, float]:
    """The loss of every step of a run that nobody touched."""
    with running(tmp_path_factory.mktemp("unbroken"), killable(), "--fleet", "3x2") as run:
        assert run.wait() == 0, run.story()
        assert run.incidents() == []
        losses = run.losses()
    assert sorted(losses) == list(range(1, STEPS + 1))
    return losses
