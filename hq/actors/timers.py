"""One timer for all queues: who wants to be woken when. No actor polls."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

import anyio

from hq.actors.clock import Clock


class Timers:
    """For each number one instant, the earliest asked for.

    Who asks for a later one is still woken at the earlier and asks again: most instants only ever move on,
    and this way moving them costs nothing.
    """

    def __init__(self, clock: Clock, ring: Callable[[int], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._instants: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []
        self._waiting_for: int | None = None
        self._scope: anyio.CancelScope | None = None
        self._changed = anyio.Event()

    def set(self, number: int, instant: int | None) -> None:
        """Wake this number at an instant or before, or never."""
        if instant is None:
            self._instants.pop(number, None)
            return
        known = self._instants.get(number)
        if known is not None and known <= instant:
            return
        self._instants[number] = instant
        heappush(self._heap, (instant, number))
        if self._waiting_for is None:
            self._changed.set()
        elif instant < self._waiting_for and self._scope is not None:
            self._scope.cancel()

    async def run(self) -> None:
        """Ring, for ever."""
        while True:
            instant = self._first()
            if instant is None:
                self._changed = anyio.Event()
                await self._changed.wait()
                continue
            if instant > self._clock.now:
                with anyio.CancelScope() as self._scope:
                    self._waiting_for = instant
                    await self._clock.until(instant)
                self._waiting_for = self._scope = None
            self._ring_due()

    def _first(self) -> int | None:
        """The earliest instant anyone still wants."""
        while self._heap:
            instant, number = self._heap[0]
            if self._instants.get(number) == instant:
                return instant
            heappop(self._heap)
        return None

    def _ring_due(self) -> None:
        now = self._clock.now
        while (instant := self._first()) is not None and instant <= now:
            _, number = heappop(self._heap)
            del self._instants[number]
            self._ring(number)
