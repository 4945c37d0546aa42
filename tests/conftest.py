"""What all tests share: how hypothesis draws, and the summary table that a run of many seeds ends with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

_SUMMARY = "marin-sup summary"

# A shared CI machine has no honest deadline for one example. `make test` draws the same examples every time;
# `make test-long` draws new ones and prints how to repeat a failure.
_SHARED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("short", derandomize=True, database=None, **_SHARED)
settings.register_profile("long", max_examples=1000, print_blob=True, **_SHARED)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("short" if config.option.markexpr == "not long" else "long")


@pytest.fixture
def record_summary(request: pytest.FixtureRequest) -> Callable[[str, Mapping[str, object]], None]:
    """`record_summary(section, row)` adds a row, column by column, to a table printed after the last test."""

    def record(section: str, row: Mapping[str, object]) -> None:
        cells = {column: str(value) for column, value in row.items()}
        # Properties travel with the report, so rows of xdist's workers arrive, too.
        request.node.user_properties.append((_SUMMARY, [section, cells]))

    return record


def pytest_terminal_summary(terminalreporter: Any) -> None:
    tables: dict[str, list[dict[str, str]]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) != "call":
                continue
            for name, value in report.user_properties:
                if name == _SUMMARY:
                    tables.setdefault(value[0], []).append(value[1])
    for section, rows in sorted(tables.items()):
        terminalreporter.section(section)
        for line in _table(rows):
            terminalreporter.line(line)


def _table(rows: list[dict[str, str]]) -> list[str]:
    """Rows under a line of column names, each column as wide as its widest cell; sorted by their cells."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    ordered = sorted(
        [[row.get(c, "") for c in columns] for row in rows], key=lambda cells: [(len(c), c) for c in cells]
    )
    lines = [columns, *ordered]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
