"""What rules may ask of chance; the answers come from outside, so that a seed repeats them."""

from __future__ import annotations

from typing import Protocol


class Chance(Protocol):
    """Tokens nobody can guess, and numbers nobody needs to guard."""

    def token(self) -> bytes:
        """16 unguessable bytes."""

    def between(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
