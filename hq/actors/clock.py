"""The clock of a process: the wall at its start, and monotonic time since, so that it never goes back."""

from __future__ import annotations

import time
from typing import Protocol

import anyio


class Clock(Protocol):
    """Milliseconds since the epoch, and waiting for them."""

    @property
    def now(self) -> int:
        """The time."""

    async def until(self, instant: int) -> None:
        """Return at that instant, or at once if it has passed."""


class SystemClock:
    """The clock of production."""

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.monotonic_ns()

    @property
    def now(self) -> int:
        """The time."""
        return (time.monotonic_ns() + self._offset) // 1_000_000

    async def until(self, instant: int) -> None:
        """Sleep until that instant."""
        await anyio.sleep(max(0, instant - self.now) / 1_000)
