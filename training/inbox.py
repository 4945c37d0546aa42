"""What each rank hands to the step beside its rows, and what the step hands back: plain numbers that all ranks reduce
anyway.

A request reaches rank 0 alone; it puts a one into its inbox, the step adds all inboxes, and so every rank learns of it
from the same step. The checksum of the rows that were really loaded travels the same way: crc32 of each row with its
sample id, summed modulo 2**32. float32 adds only 24 bits exactly, so a rank sends its sum as four bytes: exact up to
65,000 ranks.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

INBOX = ("save", "stop", "checksum_0", "checksum_8", "checksum_16", "checksum_24")
_SHIFTS = (0, 8, 16, 24)


def pack_inbox(save: bool, stop: bool, checksum: int) -> np.ndarray:
    """float32 [len(INBOX)] of one rank."""
    return np.array([save, stop, *((checksum >> shift) & 0xFF for shift in _SHIFTS)], np.float32)


@dataclass(frozen=True, slots=True)
class Heard:
    """The sum of all ranks' inboxes, read back."""

    save: bool
    stop: bool
    checksum: int


def unpack_inbox(total: np.ndarray) -> Heard:
    save, stop, *lanes = (int(value) for value in total)
    return Heard(save > 0, stop > 0, sum(lane << shift for lane, shift in zip(lanes, _SHIFTS, strict=True)) % 2**32)


def checksum_rows(ids: Iterable[int], rows: np.ndarray) -> int:
    """Sum modulo 2**32 of crc32(row, id) over rows [n, tokens]: the same however the samples are split."""
    sums = (
        zlib.crc32(row.astype("<i4").tobytes(), zlib.crc32(str(i).encode())) for i, row in zip(ids, rows, strict=True)
    )
    return sum(sums) % 2**32
