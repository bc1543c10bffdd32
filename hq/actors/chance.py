"""Chance for production: the operating system's, read in blocks."""

from __future__ import annotations

import os
import random

TOKEN_BYTES = 16
BLOCK_BYTES = 256 * TOKEN_BYTES


class SystemChance:
    """Tokens from os.urandom, many at a time: a call a token would cost half of a receive."""

    __slots__ = ("_block", "_random", "_used")

    def __init__(self) -> None:
        self._block = b""
        self._used = 0
        self._random = random.SystemRandom()

    def token(self) -> bytes:
        """16 unguessable bytes; no byte of a block is given out twice."""
        start = self._used
        if start == len(self._block):
            self._block = os.urandom(BLOCK_BYTES)
            start = 0
        self._used = end = start + TOKEN_BYTES
        return self._block[start:end]

    def between(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return self._random.randint(low, high)
