"""A receive over all queues under a prefix: the least recently served is asked first, and nobody polls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from hq.actors.clock import Clock
from hq.actors.directory import Directory
from hq.domain.commands import Receive
from hq.domain.names import is_under
from hq.domain.replies import Delivery
from hq.errors import InvalidInput, QueueNotFound

MOST_QUEUES = 1_000
ReceiveNow = Callable[[int, Receive, None], Awaitable[list[Delivery]]]


class PrefixReceive:
    """Remembers when each queue was last served, so that none is forgotten."""

    def __init__(self, directory: Directory, receive: ReceiveNow) -> None:
        self._directory = directory
        self._receive = receive
        self._served: dict[str, int] = {}
        self._waiting: set[anyio.Event] = set()
        self._patient = True
        self._turn = 0

    async def receive(
        self, prefix: str, command: Receive, clock: Clock, wait_ms: int
    ) -> tuple[str, list[Delivery]]:
        """The first queue that has something, and what; an empty name and nothing when the time is over."""
        wait_until = clock.now + wait_ms
        while True:
            stirred = anyio.Event()
            names = self._names(prefix)
            with _Listening(self._directory, names, stirred.set):
                for name in names:
                    deliveries = await self._receive(self._directory.row(name).number, command, None)
                    if deliveries:
                        self._turn += 1
                        self._served[name] = self._turn
                        return name, deliveries
                if clock.now >= wait_until or not names or not self._patient:
                    return "", []
                await self._wait(stirred, clock, wait_until)

    def end_waits(self) -> None:
        """Answer who waits, now and from now on: with nothing, unless some are on their way."""
        self._patient = False
        for stirred in self._waiting:
            stirred.set()

    async def _wait(self, stirred: anyio.Event, clock: Clock, wait_until: int) -> None:
        self._waiting.add(stirred)
        try:
            await until_set(stirred, clock, wait_until)
        finally:
            self._waiting.discard(stirred)

    def _names(self, prefix: str) -> list[str]:
        names = [row.name for row in self._directory.rows() if is_under(row.name, prefix)]
        if len(names) > MOST_QUEUES:
            raise InvalidInput(f"more than {MOST_QUEUES} queues are under this prefix; take a longer one")
        return sorted(names, key=lambda name: self._served.get(name, 0))


async def until_set(event: anyio.Event, clock: Clock, instant: int) -> None:
    """Wait for an event, but not past an instant."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_set_at, clock, instant, event)
        await event.wait()
        tasks.cancel_scope.cancel()


async def _set_at(clock: Clock, instant: int, event: anyio.Event) -> None:
    await clock.until(instant)
    event.set()


class _Listening:
    """Hears from queues that something changed; they stay awake meanwhile."""

    def __init__(self, directory: Directory, names: list[str], heard: Callable[[], None]) -> None:
        self._directory = directory
        self._names = names
        self._heard = heard

    def __enter__(self) -> None:
        self._actors = []
        for name in self._names:
            try:
                actor = self._directory.actor(self._directory.row(name).number)
            except QueueNotFound:
                continue
            actor.listeners.add(self._heard)
            self._actors.append(actor)

    def __exit__(self, *_: object) -> None:
        for actor in self._actors:
            actor.listeners.discard(self._heard)
            actor.notify()
