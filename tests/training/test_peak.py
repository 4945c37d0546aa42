"""A measured peak is measured once, so that the utilisation of two attempts can be compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from training import peak
from training.peak import peak_of_run


def test_it_is_measured_once_for_each_number_of_ranks(tmp_path: Path) -> None:
    first = peak_of_run(tmp_path / "cache", 4)
    assert first > 1e6
    assert peak_of_run(tmp_path / "cache", 4) == first
    assert len(list((tmp_path / "cache").iterdir())) == 1
    peak_of_run(tmp_path / "cache", 2)
    assert len(list((tmp_path / "cache").iterdir())) == 2


@pytest.mark.parametrize("content", ["", "nan", "inf", "-3.0", "0", "fast"])
def test_a_damaged_value_is_measured_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    monkeypatch.setattr(peak, "measure_peak", lambda: 5e9)
    (tmp_path / "measured-peak-4-ranks").write_text(content)
    assert peak_of_run(tmp_path, 4) == 5e9
    assert peak_of_run(None, 4) == 5e9
