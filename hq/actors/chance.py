"""Chance for production: the operating system's, read in blocks."""

from __future__ import annotations

import os
import random
from struct import Struct

TOKENS_OF_BLOCK = Struct("16s" * 256)


class SystemChance:
    """Tokens from os.urandom, many at a time: a call a token would cost half of a receive."""

    __slots__ = ("_random", "_tokens")

    def __init__(self) -> None:
        self._tokens: list[bytes] = []
        self._random = random.SystemRandom()

    def token(self) -> bytes:
        """16 unguessable bytes; none is given out twice."""
        if not self._tokens:
            self._tokens.extend(TOKENS_OF_BLOCK.unpack(os.urandom(TOKENS_OF_BLOCK.size)))
        return self._tokens.pop()

    def between(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return self._random.randint(low, high)
