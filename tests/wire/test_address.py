"""The address file: private, replaced whole, and never believed blindly."""

from __future__ import annotations

from pathlib import Path

import pytest

from supervisor.wire.address import Address, NoAddress, read_address, write_address


def test_what_is_written_is_read_and_only_the_owner_may(tmp_path: Path) -> None:
    path = tmp_path / "sync.json"
    for port in (1, 65535):
        write_address(path, Address("127.0.0.1", port, "t" * 32))
        assert read_address(path) == Address("127.0.0.1", port, "t" * 32)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["sync.json"]


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        (None, 0o600, "cannot be read"),
        ("", 0o600, "cannot be read"),
        ("[]", 0o600, "holds no address"),
        ('{"host": "h", "port": "1", "token": "t"}', 0o600, "holds no address"),
        ('{"host": "h", "port": 70000, "token": "t"}', 0o600, "holds no address"),
        ('{"host": "h", "port": 1, "token": "t"}', 0o644, "others can read the token"),
    ],
)
def test_a_bad_file_is_an_absent_supervisor_with_a_reason(
    tmp_path: Path, text: str | None, mode: int, said: str
) -> None:
    path = tmp_path / "sync.json"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    with pytest.raises(NoAddress, match=said):
        read_address(path)
