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
_REAL = re.compile(r"[-+]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][-+]?[0-9]{1,3})?", re.ASCII)
_DIGITS = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?", re.ASCII)
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?", re.ASCII)
_OCTAL = re.compile(r"[-+]?0[0-9]+", re.ASCII)
_OTHER_FORM = re.compile(
    r"[-+]?(0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?)", re.ASCII
)
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


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
        raise _unquoted(text, meant, meant)
    if _WHOLE.fullmatch(text):
        return int(text)
    if _OCTAL.fullmatch(text):
        raise _unquoted(text, "an octal number", "the number without leading zeros")
    if _SEXAGESIMAL.fullmatch(text):
        raise _unquoted(text, "a number in base 60", "a duration with its units, such as 1h30m")
    if _NOT_FINITE.fullmatch(text) or (_DIGITS.fullmatch(text) and len(text) > 19):
        raise Ambiguous(f'found {escaped(text)}, a number out of all bounds; write "{escaped(text)}" for text')
    if _REAL.fullmatch(text):
        return _finite(text)
    if _OTHER_FORM.fullmatch(text):
        raise _unquoted(text, "a number", "it in plain decimal digits")
    return text


def _unquoted(text: str, taken_for: str, instead: str) -> Ambiguous:
    shown = escaped(text)
    return Ambiguous(
        f'found {shown} without quotes, which some readers take for {taken_for}; write {instead}, or "{shown}" for text'
    )


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise Ambiguous(f'found {escaped(text)}, a number out of all bounds; write "{escaped(text)}" for text')
    return value
