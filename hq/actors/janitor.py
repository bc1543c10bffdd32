"""The janitor of a node: has storage prune what is kept no longer, at an interval, until nothing is left.

Appends wait while a step is taken. Steps are short, and after each the janitor rests longer than it took, but
not so long that a busy node would outrun it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from anyio.lowlevel import checkpoint as breathe

from hq.actors.clock import Clock
from hq.actors.limits import Limits
from hq.backends.port import Backend, Retention

log = logging.getLogger("hq.janitor")

REST = 4
MAX_REST_MS = 50


class Janitor:
    """Keeps the storage of a node small."""

    def __init__(self, backend: Backend, clock: Clock, limits: Limits) -> None:
        self._backend = backend
        self._clock = clock
        self._limits = limits
        self._retention = Retention(limits.journal_ms, limits.journal_bytes, limits.unarchived_bytes)

    async def run(self) -> None:
        """Prune again and again, for ever."""
        while True:
            await self._clock.until(self._clock.now + self._limits.prune_every_ms)
            try:
                await self._in_steps(self._prune)
            except Exception:
                # Whatever it was, only room depends on it, and the next time may go better.
                log.exception("pruning failed and will be tried again")

    async def compact(self) -> None:
        """Have storage give back all the room it does not use."""
        await self._in_steps(self._compact)

    async def _prune(self, limit: int) -> bool:
        return await self._backend.prune(self._clock.now, self._retention, limit) > 0

    async def _compact(self, limit: int) -> bool:
        # Not until there is none: where much goes on, pages become free all the time.
        return await self._backend.compact(limit) == limit

    async def _in_steps(self, step: Callable[[int], Awaitable[bool]]) -> None:
        """Take steps as long as they say that there is more to do."""
        begun = self._clock.now
        while await step(self._limits.prune):
            await breathe()
            ended = self._clock.now
            await self._clock.until(ended + min(REST * (ended - begun), MAX_REST_MS))
            begun = self._clock.now
