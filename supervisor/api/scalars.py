"""What an unquoted YAML scalar means, where all readers agree; where they do not, a sentence instead of a guess.

kubectl's reader follows YAML 1.1 in parts (`on` is true, `010` is eight) and Python's in others (`1:30` is ninety). A
file must mean the same to both, so anything they could differ on is refused with the two ways to write it.
"""

from __future__ import annotations

import re

from supervisor.api.words import escaped

Scalar = str | int | float | bool | None

_NULL = {"", "~", "null", "Null", "NULL"}
_BOOLEAN = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_YES = {"y", "yes", "on"}
_NO = {"n", "no", "off"}
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{0,18})", re.ASCII)
_REAL = re.compile(r"[-+]?(0|[1-9][0-9]{0,18})(\.[0-9]{1,30})?([eE][-+]?[0-9]{1,3})?", re.ASCII)
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?", re.ASCII)
_OTHER_NUMBER = re.compile(
    r"[-+]?(0[0-9_]+|0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9][0-9_]*|(\.[0-9_]+|[0-9][0-9_]*\.[0-9_]*)([eE][-+]?[0-9]+)?"
    r"|[0-9][0-9_]*[eE][-+]?[0-9]+|\.(inf|Inf|INF|nan|NaN|NAN))",
    re.ASCII,
)


class Ambiguous(ValueError):
    """An unquoted scalar that readers of YAML take for different things; `str()` says so and how to write it."""


def resolve(text: str) -> Scalar:
    """The value of the plain scalar `text`. Raises `Ambiguous`."""
    if text in _NULL:
        return None
    if text in _BOOLEAN:
        return _BOOLEAN[text]
    if text.lower() in _YES | _NO and text in (text.lower(), text.upper(), text.title()):
        meant = "true" if text.lower() in _YES else "false"
        raise Ambiguous(
            f'found {text} without quotes, which some readers take for {meant}; write {meant}, or "{text}" for text'
        )
    if _WHOLE.fullmatch(text):
        return int(text)
    if _REAL.fullmatch(text):
        return _finite(text)
    if _SEXAGESIMAL.fullmatch(text):
        raise Ambiguous(
            f"found {escaped(text)} without quotes, which some readers take for a number in base 60; "
            f'write a duration with its units, such as 1h30m, or "{escaped(text)}" for text'
        )
    if _OTHER_NUMBER.fullmatch(text):
        raise Ambiguous(
            f"found {escaped(text)} without quotes, which readers take for different numbers (octal among them); "
            f'write a plain decimal number, or "{escaped(text)}" for text'
        )
    return text


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise Ambiguous(f"found {escaped(text)}, a number out of all bounds")
    return value
