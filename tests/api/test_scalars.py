"""What an unquoted scalar means, and which ones are refused because readers differ."""

from __future__ import annotations

import pytest

from supervisor.api.scalars import Ambiguous, resolve


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("False", False),
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("18000000000000", 18_000_000_000_000),
        ("0.20", 0.2),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("-1.5E-3", -0.0015),
        ("tRuE", "tRuE"),
        ("yEs", "yEs"),
        ("none", "none"),
        ("None", "None"),
        ("45m", "45m"),
        ("5/24h", "5/24h"),
        ("1h:30", "1h:30"),
        ("2027-03-15", "2027-03-15"),
        ("2027-03-15T00:00:00Z", "2027-03-15T00:00:00Z"),
        ("1.2.3", "1.2.3"),
        ("0x", "0x"),
        ("--config", "--config"),
        ("٣", "٣"),
    ],
)
def test_a_scalar_that_all_readers_agree_on_has_its_value(text: str, value: object) -> None:
    resolved = resolve(text)
    assert (type(resolved), resolved) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("on", "some readers take for true; write true, or"),
        ("OFF", "some readers take for false; write false, or"),
        ("y", "some readers take for true"),
        ("No", "some readers take for false"),
        ("010", "an octal number; write the number without leading zeros"),
        ("-08", "an octal number"),
        ("0x1F", "take for a number; write it in plain decimal digits"),
        ("0o17", "take for a number"),
        ("0b1", "take for a number"),
        ("1_000", "take for a number"),
        ("1:30", "a number in base 60; write a duration with its units, such as 1h30m, or"),
        ("190:20:30.15", "a number in base 60"),
        (".inf", "out of all bounds"),
        ("-.Inf", "out of all bounds"),
        (".nan", "out of all bounds"),
        ("1e999", "out of all bounds"),
        ("9" * 20, "out of all bounds"),
        ("9" * 5000, "out of all bounds"),
    ],
)
def test_a_scalar_that_readers_differ_on_is_refused_with_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(Ambiguous) as refused:
        resolve(text)
    assert sentence in str(refused.value)
    assert len(str(refused.value)) < 300
