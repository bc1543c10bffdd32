"""A clock that moves only when told."""

from __future__ import annotations

import anyio

from hq.domain.settings import DAY_MS, HOUR_MS, MINUTE_MS

SECOND_MS = 1_000


class FrozenClock:
    """Milliseconds since the epoch, as long as nobody advances it."""

    def __init__(self, now: int = 1_000_000) -> None:
        self.now = now
        self._sleepers: list[tuple[int, anyio.Event]] = []

    def advance(
        self, ms: int = 0, *, seconds: int = 0, minutes: int = 0, hours: int = 0, days: int = 0
    ) -> None:
        """Let time pass, and wake who waited for it."""
        span = ms + seconds * SECOND_MS + minutes * MINUTE_MS + hours * HOUR_MS + days * DAY_MS
        assert span >= 0, "time does not go back"
        self.now += span
        due = [event for instant, event in self._sleepers if instant <= self.now]
        self._sleepers = [sleeper for sleeper in self._sleepers if sleeper[0] > self.now]
        for event in due:
            event.set()

    async def until(self, instant: int) -> None:
        """Return once the clock has been advanced to that instant."""
        if instant > self.now:
            sleeper = (instant, anyio.Event())
            self._sleepers.append(sleeper)
            try:
                await sleeper[1].wait()
            finally:
                if sleeper in self._sleepers:
                    self._sleepers.remove(sleeper)
