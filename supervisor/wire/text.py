"""Untrusted text made fit to store and to show: bounded, and without control characters that a terminal would obey."""

from __future__ import annotations

import re

# C0 and C1 controls, line separators, bidirectional overrides and isolates, and lone surrogates (not encodable)
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSAFE_IN_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str, limit: int) -> str:
    """At most `limit` characters on one line; the control characters escaped, the cut marked."""
    return _bounded(_UNSAFE.sub(_escape, text[: limit + 1]), limit)


def printable_lines(data: bytes, limit: int) -> str:
    """The last `limit` characters of a program's output: UTF-8 with replacements; newline and tab stay."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    return _UNSAFE_IN_LINES.sub(_escape, text)[-limit:]


def _bounded(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "\u2026"


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
