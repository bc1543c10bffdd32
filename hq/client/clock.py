"""The clock of a server, as its client knows it."""

from __future__ import annotations

import anyio

from hq.actors.clock import SystemClock


class RemoteClock:
    """Our own clock, set by what the server says: leases end by the server's."""

    def __init__(self) -> None:
        self._own = SystemClock()
        self._ahead_ms = 0

    def hear(self, now: int) -> None:
        """The server has just said what time it is. A clock that seems late makes renewals early, no harm."""
        self._ahead_ms = now - self._own.now

    @property
    def now(self) -> int:
        """The time there."""
        return self._own.now + self._ahead_ms

    async def until(self, instant: int) -> None:
        """Sleep until that instant there."""
        await anyio.sleep(max(0, instant - self.now) / 1_000)
