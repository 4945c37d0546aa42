"""A shuffle that needs no memory: position -> place, one to one, for any length."""

from __future__ import annotations

import hashlib

ROUNDS = 4  # with random round functions a strong pseudorandom permutation (Luby, Rackoff 1988)


def permute(position: int, length: int, key: tuple[int, int]) -> int:
    """The place of `position` in a permutation of range(length) chosen by `key`. Raises ValueError outside the range.

    A balanced Feistel network permutes the next power of four; places outside the range are walked through again
    (cycle walking), at most four times as many on average.
    """
    if not 0 <= position < length:
        raise ValueError(f"position {position} is outside range({length})")
    half = max(1, ((length - 1).bit_length() + 1) // 2)
    place = _feistel(position, half, key)
    while place >= length:
        place = _feistel(place, half, key)
    return place


def _feistel(value: int, half: int, key: tuple[int, int]) -> int:
    mask = (1 << half) - 1
    left, right = value >> half, value & mask
    for turn in range(ROUNDS):
        seed = f"{key[0]},{key[1]},{turn},{right}".encode()
        left, right = right, left ^ (int.from_bytes(hashlib.blake2b(seed, digest_size=8).digest(), "little") & mask)
    return (left << half) | right
