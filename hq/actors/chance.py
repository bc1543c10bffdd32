"""Chance for production: the operating system's, read in blocks."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import partial
from itertools import chain
from struct import Struct

TOKENS_OF_BLOCK = Struct("16s" * 256)


class SystemChance:
    """Tokens from os.urandom, many at a time: a call a token would cost half of a receive."""

    __slots__ = ("_random", "token")

    def __init__(self) -> None:
        blocks = iter(partial(os.urandom, TOKENS_OF_BLOCK.size), None)
        self.token: Callable[[], bytes] = chain.from_iterable(map(TOKENS_OF_BLOCK.unpack, blocks)).__next__
        """16 unguessable bytes; none is given out twice."""
        self._random = random.SystemRandom()

    def between(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return self._random.randint(low, high)
