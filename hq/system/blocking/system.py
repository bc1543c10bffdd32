"""hq.blocking.open: a system for threads."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from os import PathLike
from typing import Any, Unpack

from anyio.from_thread import start_blocking_portal

from hq.actors.clock import Clock
from hq.actors.limits import Limits
from hq.actors.watch import Event
from hq.backends.port import Examined
from hq.domain.chance import Chance
from hq.system.blocking.calls import Calls
from hq.system.blocking.events import iterate
from hq.system.blocking.message import Message
from hq.system.blocking.queue import Queue
from hq.system.events import EventKeywords, Handle, Handler
from hq.system.keywords import SettingsKeywords
from hq.system.open import open as open_async
from hq.system.system import System as AsyncSystem


class System:
    """What `hq.blocking.open` gives. Any thread may use it."""

    def __init__(self, system: AsyncSystem, call: Calls) -> None:
        self._system = system
        self._call = call

    @property
    def clock(self) -> Clock:
        """The clock that leases go by."""
        return self._system.clock

    def ready(self) -> str:
        """What an answer survives; an error if nothing can be stored now."""
        return self._call(self._system.ready)

    def examine(self, most: int = 100) -> Examined:
        """Read all that is stored, and say what of it cannot be read."""
        return self._call(self._system.examine, most)

    def create_queue(self, name: str, **settings: Unpack[SettingsKeywords]) -> Queue:
        """Make a queue, or find it if it has these settings; hq.Settings has the defaults."""
        return Queue(self._call(self._system.create_queue, name, **settings), self._call)

    def queue(self, name: str) -> Queue:
        """A handle to a queue; whether there is one is seen when it is used."""
        return Queue(self._system.queue(name), self._call)

    def queues(self) -> list[Queue]:
        """All queues there are, oldest first."""
        return [Queue(queue, self._call) for queue in self._call(self._system.queues)]

    def delete_queue(self, name: str) -> None:
        """Delete a queue with all it holds; the name is free at once."""
        self._call(self._system.delete_queue, name)

    def receive_under(
        self,
        prefix: str,
        limit: int = 1,
        *,
        wait_ms: int = 0,
        lease_ms: int | None = None,
        holder: str | None = None,
    ) -> list[Message]:
        """Take messages out of any one queue at or below a prefix; `message.queue` says which it was."""
        received = self._call(
            self._system.receive_under, prefix, limit, wait_ms=wait_ms, lease_ms=lease_ms, holder=holder
        )
        return [Message(message, Queue(message.queue, self._call), self._call) for message in received]

    def events(self, **wanted: Unpack[EventKeywords]) -> Generator[Event]:
        """What happens, as the journal tells it; see hq.System. From now on is from this call on."""
        return iterate(partial(self._system.events, **wanted), self._call)

    def add_event_handler(self, handle: Handle, **wanted: Unpack[EventKeywords]) -> Handler:
        """Call a function for each event, in the thread of the system; it may be a coroutine function."""

        async def add() -> Handler:
            return self._system.add_event_handler(handle, **wanted)

        return self._call(add)

    def close(self) -> None:
        """Finish what was accepted, give back what was fetched ahead, let go of the store."""
        self._call(self._system.close)


@contextmanager
def open(
    url: str | PathLike[str],
    *,
    durability: str = "power",
    access: str = "shared",
    postgres: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    api_key: str | None = None,
    patience_s: float = 15.0,
    clock: Clock | None = None,
    chance: Chance | None = None,
) -> Iterator[System]:
    """Open a system for threads: `memory:`, a path, `sqlite:///path`, `postgresql://...`, or a server."""
    opening = open_async(
        url,
        durability=durability,
        access=access,
        postgres=postgres,
        limits=limits,
        api_key=api_key,
        patience_s=patience_s,
        clock=clock,
        chance=chance,
    )
    with (
        start_blocking_portal("asyncio", name="hq") as portal,
        portal.wrap_async_context_manager(opening) as system,
    ):
        call = Calls(portal)
        try:
            yield System(system, call)
        finally:
            call.closed = True
