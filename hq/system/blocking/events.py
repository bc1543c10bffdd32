"""Events for threads."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress

from hq.actors.watch import Event
from hq.errors import Closed
from hq.system.blocking.calls import Calls
from hq.system.events import Events


def iterate(begin: Callable[[], Events], call: Calls) -> Generator[Event]:
    """One event after the other, from the moment of this call; it ends when the system is closed."""

    async def begun() -> Events:
        return await begin().__aenter__()

    async def following() -> Event | None:
        return await anext(events, None)

    events = call(begun)

    def each() -> Generator[Event]:
        try:
            with suppress(Closed):
                while (event := call(following)) is not None:
                    yield event
        finally:
            with suppress(Closed):
                call(events.aclose)

    return each()
