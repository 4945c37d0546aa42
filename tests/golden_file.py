"""Golden files: what people read, kept as text and compared. `UPDATE_GOLDEN=1 make test` writes them anew."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

_GOLDEN = Path(__file__).parent / "golden"


def assert_golden(name: str, text: str) -> None:
    """`text` is what tests/golden/NAME holds; on a difference the failure shows it."""
    file = _GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN") == "1":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert file.is_file(), f"no golden file {name}; write it with UPDATE_GOLDEN=1 and read it"
    golden = file.read_text(encoding="utf-8")
    difference = "\n".join(difflib.unified_diff(golden.splitlines(), text.splitlines(), "golden", "now", lineterm=""))
    assert text == golden, f"{name} differs (UPDATE_GOLDEN=1 writes it anew):\n{difference}"
