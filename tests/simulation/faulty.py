"""Backends behind bad storage: slow, refusing, lying low, or done without saying so."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import anyio
from anyio.abc import TaskGroup

from hq.backends.memory import MemoryBackend
from hq.backends.port import Batch, Ending
from hq.backends.postgres import PostgresBackend
from hq.domain.checkpoint import Chunk
from hq.domain.lookups import Found, Lookup
from hq.testing import FrozenClock


class Broken(Exception):
    """Storage broke down in mid-call."""


class Faults:
    """Before a backend: fails at random while `faults` is set; what it did is counted in `done`."""

    def __init__(self, seed: int, clock: FrozenClock, tasks: TaskGroup, *place: Any, **options: Any) -> None:
        super().__init__(*place, **options)
        self.faults = True
        self.done: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._clock = clock
        self._tasks = tasks

    async def append(self, batches: Sequence[Batch]) -> list[Ending]:
        fate = self._fate("durable", "slow", "refused", "lost", "unheard", "late")
        if fate == "refused":
            return [Ending.REFUSED] * len(batches)
        if fate == "lost":
            return [Ending.UNKNOWN] * len(batches)
        if fate == "late":
            self._tasks.start_soon(self._append_late, batches)
            return [Ending.UNKNOWN] * len(batches)
        if fate == "slow":
            await self._pause()
        endings = await super().append(batches)
        return [Ending.UNKNOWN] * len(batches) if fate == "unheard" else endings

    async def checkpoint(self, queue: int, chunk: Chunk, wake_at: int | None) -> None:
        fate = self._fate("written", "slow", "broken before", "broken after")
        if fate == "broken before":
            raise Broken
        if fate == "slow":
            await self._pause()
        await super().checkpoint(queue, chunk, wake_at)
        if fate == "broken after":
            raise Broken

    async def fetch(self, queue: int, lookups: Sequence[Lookup]) -> list[Found]:
        if self._fate("fetched", "slow") == "slow":
            await self._pause()
        return await super().fetch(queue, lookups)

    async def load(self, queue: int) -> Any:
        if self._fate("loaded", "broken") == "broken":
            raise Broken
        return await super().load(queue)

    def _fate(self, good: str, *bad: str) -> str:
        fate = self._random.choice(bad) if self.faults and self._random.random() < 0.15 else good
        self.done[fate] += 1
        return fate

    async def _append_late(self, batches: Sequence[Batch]) -> None:
        await self._pause()
        endings = await super().append(batches)
        self.done.update(f"late and {ending.value}" for ending in endings)

    async def _pause(self) -> None:
        with anyio.CancelScope(shield=True):
            await self._clock.until(self._clock.now + self._random.randint(1, 40))


class FaultyMemory(Faults, MemoryBackend):
    """The memory backend."""


class FaultyPostgres(Faults, PostgresBackend):
    """Postgres itself, which is opened before it fails."""
