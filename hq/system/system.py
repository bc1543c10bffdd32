"""A system: all queues of one store, and the life they have while it is open."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Protocol, Unpack

import anyio
from anyio.abc import TaskGroup, TaskStatus

from hq.actors.clock import Clock
from hq.actors.node import Node
from hq.backends.port import Backend, Examined
from hq.domain.commands import Receive
from hq.domain.names import queue_name
from hq.domain.settings import Settings
from hq.system.events import EventKeywords, Events, Handle, Handler, events
from hq.system.keywords import SettingsKeywords, changed
from hq.system.line import Line
from hq.system.message import Message
from hq.system.port import Port
from hq.system.queue import Queue, received


class Life:
    """When a system is to end, and when it has."""

    def __init__(self) -> None:
        self.closing = anyio.Event()
        self.ended = anyio.Event()
        self.tasks: TaskGroup = anyio.create_task_group()


class System:
    """What `hq.open` gives. It is used in the event loop that opened it, by any number of tasks."""

    def __init__(self, line: Line, life: Life) -> None:
        self.line = line
        self._life = life

    @property
    def clock(self) -> Clock:
        """The clock that leases go by."""
        return self.line.node.clock

    async def ready(self) -> str:
        """What an answer survives, `power`, `process` or `nothing`; an error if nothing can be stored now."""
        self.line.guard.check()
        return await self.line.node.ready()

    async def examine(self, most: int = 100) -> Examined:
        """Read all that is stored: what storage is, and what of it cannot be read, for so many things."""
        self.line.guard.check()
        return await self.line.node.examine(most)

    async def create_queue(self, name: str, **settings: Unpack[SettingsKeywords]) -> Queue:
        """Make a queue, or find it if it has these settings; hq.Settings has the defaults."""
        self.line.guard.check()
        await self.line.node.create(queue_name(name), changed(Settings(), settings))
        return Queue(name, self.line)

    def queue(self, name: str) -> Queue:
        """A handle to a queue; whether there is one is seen when it is used."""
        return Queue(queue_name(name), self.line)

    async def queues(self) -> list[Queue]:
        """All queues there are, oldest first."""
        self.line.guard.check()
        return [Queue(row.name, self.line) for row in await self.line.node.queues()]

    async def delete_queue(self, name: str) -> None:
        """Delete a queue with all it holds; the name is free at once."""
        self.line.guard.check()
        await self.line.node.drop(queue_name(name))

    async def receive_under(
        self,
        prefix: str,
        limit: int = 1,
        *,
        wait_ms: int = 0,
        lease_ms: int | None = None,
        holder: str | None = None,
    ) -> list[Message]:
        """Take messages out of any one queue at or below a prefix (`mail` holds `mail.eu`, `""` holds all).

        The queue that was served least recently is asked first. `message.queue` says which it was.
        """
        self.line.guard.check()
        if prefix != "":
            queue_name(prefix)
        command = Receive(limit, lease_ms, holder)
        name, deliveries = await self.line.node.receive_under(prefix, command, wait_ms)
        if not deliveries:
            return []
        return received(Queue(name, self.line), self.line, self.line.number(name), deliveries, lease_ms)

    def events(self, **wanted: Unpack[EventKeywords]) -> Events:
        """What happens, as the journal tells it: all, or of a `queue`, under a `prefix`, of some `kinds`.

        Without `after`, from now on; `async with` it to say when now is, else it is when the loop begins.
        """
        return events(self.line, wanted)

    def add_event_handler(self, handle: Handle, **wanted: Unpack[EventKeywords]) -> Handler:
        """Call a function for each event, one after the other, until the handler or the system is closed.

        An error of the function is logged, and the next event comes.
        """
        handler = Handler(events(self.line, wanted), handle)
        self._life.tasks.start_soon(handler.run)
        return handler

    async def close(self) -> None:
        """Finish what was accepted, give back what was fetched ahead, let go of the store."""
        self.line.guard.check_place()
        self.line.guard.closed = True
        self._life.closing.set()
        with anyio.CancelScope(shield=True):
            await self._life.ended.wait()


class OpenBackend(Protocol):
    """How a backend is opened."""

    async def __call__(self) -> Backend: ...


OpenPort = Callable[[], AbstractAsyncContextManager[Port]]


def embedded(open_backend: OpenBackend, new_node: Callable[[Backend], Node]) -> OpenPort:
    """A node in this process, over a backend of its own."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Node]:
        backend = await open_backend()
        try:
            async with new_node(backend) as node:
                yield node
        finally:
            await backend.close()

    return opened


class Opening:
    """`async with` it to have a system.

    The port lives in a task of its own, shielded: a block that is cancelled can still say what became of its
    messages, an error of the block comes out as itself, and `close` may be called from any task.
    """

    def __init__(self, open_port: OpenPort) -> None:
        self._open_port = open_port

    async def __aenter__(self) -> System:
        self._tasks: TaskGroup = anyio.create_task_group()
        await self._tasks.__aenter__()
        try:
            system: System = await self._tasks.start(self._live)
        except BaseException as error:
            await self._leave(error)
            raise
        self._system = system
        return system

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        await self._system.close()
        return await self._leave(error)

    async def _leave(self, error: BaseException | None) -> bool | None:
        """Leave the task group, which would wrap an error of the block in a group, were it told of it."""
        if isinstance(error, anyio.get_cancelled_exc_class()):
            return await self._tasks.__aexit__(type(error), error, error.__traceback__)
        return await self._tasks.__aexit__(None, None, None)

    async def _live(self, *, task_status: TaskStatus[System]) -> None:
        life = Life()
        try:
            with anyio.CancelScope(shield=True):
                async with self._open_port() as port:
                    line = Line(port)
                    system = System(line, life)
                    await _serve(line, life, lambda: task_status.started(system))
        finally:
            life.ended.set()


async def _serve(line: Line, life: Life, started: Callable[[], None]) -> None:
    async with life.tasks:
        life.tasks.start_soon(line.keeper.run)
        started()
        await life.closing.wait()
        await line.keeper.give_all_back()
        life.tasks.cancel_scope.cancel()
