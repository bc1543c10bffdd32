"""Events as a program sees them: an iterator over what happens, or a function called for each."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from inspect import isawaitable
from types import TracebackType
from typing import Any, Self, TypedDict

import anyio

from hq.actors.watch import Event, Wanted
from hq.errors import Closed, HQError
from hq.system.keywords import check_known
from hq.system.line import Line
from hq.system.port import Watching

log = logging.getLogger("hq.events")

Handle = Callable[[Event], Awaitable[Any] | None]


class EventKeywords(TypedDict, total=False):
    """Which events: of one queue or under a prefix, of some kinds, after the cursor of another event."""

    after: str | None
    queue: str | None
    prefix: str | None
    kinds: Collection[str] | None


class Events:
    """`async for event in events`. It ends when the system is closed.

    Whoever is too slow to read before the journal is pruned gets JournalPruned: it has missed some.
    """

    def __init__(self, watch: Watching) -> None:
        self._watch = watch
        self._told: deque[Event] = deque()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        if not self._told:
            try:
                self._told.extend(await self._watch.page())
            except Closed:
                raise StopAsyncIteration from None
        return self._told.popleft()

    async def aclose(self) -> None:
        """Read no further."""
        await self._watch.aclose()

    async def __aenter__(self) -> Self:
        await self._watch.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Handler:
    """A function that is called for each event; what `add_event_handler` gives."""

    def __init__(self, events: Events, handle: Handle) -> None:
        self._events = events
        self._handle = handle
        self._scope = anyio.CancelScope()
        self.began = anyio.Event()
        """Set once every later event will be handled."""

    def close(self) -> None:
        """Call it no more."""
        self._scope.cancel()

    async def run(self) -> None:
        """Call it, until closed."""
        with self._scope:
            try:
                async with self._events as events:
                    self.began.set()
                    async for event in events:
                        await self._call(event)
            except HQError as error:
                log.warning("an event handler ends", exc_info=error)

    async def _call(self, event: Event) -> None:
        try:
            said = self._handle(event)
            if isawaitable(said):
                await said
        except Exception:
            log.exception("an event handler failed", extra={"kind": event.kind, "cursor": event.cursor})


def events(line: Line, wanted: EventKeywords) -> Events:
    """Events as they are wanted."""
    line.guard.check()
    check_known(wanted, EventKeywords.__annotations__)
    given: dict[str, Any] = {**wanted}
    kinds = given.get("kinds")
    given["kinds"] = None if kinds is None else frozenset(kinds)
    return Events(line.node.watch(Wanted(**given)))
