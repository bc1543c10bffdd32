"""Chance that repeats itself: the same seed, the same tokens and jitter."""

from __future__ import annotations

import random


class SeededChance:
    """Not for production: whoever knows the seed knows the tokens."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def token(self) -> bytes:
        """16 bytes."""
        return self._random.randbytes(16)

    def between(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return self._random.randint(low, high)
