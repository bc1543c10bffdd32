"""All queues of one process: their actors, lines of commits, one timer. Everything above asks here."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.abc import TaskGroup

from hq.actors.chance import SystemChance
from hq.actors.clock import Clock, SystemClock
from hq.actors.courier import Courier, Post
from hq.actors.directory import Directory
from hq.actors.inbox import Inbox
from hq.actors.janitor import Janitor
from hq.actors.limits import Limits
from hq.actors.mailbox import Envelope
from hq.actors.outcomes import Outcomes
from hq.actors.prefix import PrefixReceive, until_set
from hq.actors.services import Budget, Services
from hq.actors.timers import Timers
from hq.actors.watch import Appends, Wanted, Watch
from hq.backends.commit import CommitLines
from hq.backends.port import Backend, Bounds, Examined, JournalEntry, JournalRow, QueueRow
from hq.domain import commands as c
from hq.domain.chance import Chance
from hq.domain.commands import Command, Configure, Receive
from hq.domain.counters import Counters
from hq.domain.ids import MessageId, id_text, sequence_in, sequence_of
from hq.domain.names import queue_name
from hq.domain.replies import Delivery, Outcome
from hq.domain.settings import MAX_SPAN_MS, Settings, in_range
from hq.errors import Closed, InvalidInput

GRACE_S = 30.0
MAX_DAMAGE = 1_000


class Node:
    """Open it with `async with`; leaving drains: what was accepted is finished, waiters get nothing."""

    def __init__(
        self,
        backend: Backend,
        *,
        clock: Clock | None = None,
        chance: Chance | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self._backend = backend
        self._chance = chance or SystemChance()
        self._limits = limits or Limits()
        self._stack = AsyncExitStack()
        self._janitor = Janitor(backend, self.clock, self._limits)
        self._couriers: set[int] = set()
        self._appends = Appends()
        self._outcomes = Outcomes(self._limits.waiters)
        self._waits: set[anyio.CancelScope] = set()
        self._open = False

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._commits = CommitLines(self._backend, self._appends.tell)
        timers = Timers(self.clock, self._ring)
        budget = Budget(self._limits.memory_bytes, self._press)
        services = Services(
            self._backend,
            self._commits,
            self.clock,
            self._chance,
            timers,
            budget,
            self._limits,
            self._send_moves,
            self._outcomes,
        )
        self._tasks: TaskGroup = await self._stack.enter_async_context(anyio.create_task_group())
        self.directory = Directory(services, self._tasks)
        self._prefixes = PrefixReceive(self.directory, self._receive)
        self._tasks.start_soon(self._commits.run)
        self._tasks.start_soon(timers.run)
        await self.directory.load()
        self._tasks.start_soon(self._janitor.run)
        if self._backend.has_inbox:
            self._tasks.start_soon(self._read_inbox)
        self._open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        self._appends.tell()
        # They would listen again to the queues that are to end.
        for waiting in list(self._waits):
            waiting.cancel()
        drained = anyio.Event()
        with anyio.move_on_after(GRACE_S, shield=True):
            self.directory.stop(drained.set)
            await drained.wait()
        self._commits.close()
        self._tasks.cancel_scope.cancel()
        await self._stack.__aexit__(kind, error, trace)

    async def create(self, name: str, settings: Settings) -> QueueRow:
        """Make a queue, or find it if it has these settings; else QueueExists."""
        self._check_open()
        return await self.directory.create(queue_name(name), settings)

    async def drop(self, name: str) -> None:
        """Delete a queue with all it holds."""
        self._check_open()
        await self.directory.drop(name)

    async def queues(self) -> list[QueueRow]:
        """All queues, by number."""
        self._check_open()
        return self.directory.rows()

    @property
    def durability(self) -> str:
        """What an answer survives: `power`, `process`, or `nothing`."""
        return self._backend.durability

    async def check(self) -> None:
        """Return if storage takes writes now; else raise a StorageError."""
        self._check_open()
        await self._backend.check()

    async def examine(self, most: int) -> Examined:
        """What storage is, and what of all it has cannot be read, for so many things."""
        self._check_open()
        in_range("most", most, 1, MAX_DAMAGE)
        return Examined(await self._backend.facts(), await self._backend.damage(most))

    async def copy(self, to: Path) -> None:
        """Write all there is, as of one moment, to a new SQLite file."""
        self._check_open()
        await self._backend.copy(to)

    async def ready(self) -> str:
        """What an answer survives, if storage takes writes now."""
        await self.check()
        return self.durability

    async def compact(self, name: str) -> None:
        """Have storage give back the room it does not use: the store is one for all queues."""
        self._check_open()
        self.number(name)
        await self._janitor.compact()

    @property
    def incarnation(self) -> int:
        """Of the store: new when it is made or restored."""
        return self._backend.incarnation

    def counters(self) -> Iterator[tuple[str, Counters]]:
        """The counters of every queue that is awake; some of what they count may not be durable yet."""
        return self.directory.counters()

    def waiting(self) -> Iterator[tuple[str, int]]:
        """How many receives wait for each queue that is awake; one over a prefix waits for each of its."""
        return self.directory.waiting()

    async def journal(self, after: int, limit: int) -> list[JournalEntry]:
        """Entries of all queues after a position, at most so many."""
        self._check_open()
        return await self._backend.journal(after, limit)

    async def journal_rows(self, after: int, upto: int, limit: int) -> list[JournalRow]:
        """Rows of a range of positions as they are stored, at most so many."""
        self._check_open()
        return await self._backend.journal_rows(after, upto, limit)

    async def journal_reach(self, after: int, events: int) -> int:
        """The last position up to which no more than so many events come after another, or one row does."""
        self._check_open()
        return await self._backend.journal_reach(after, events)

    async def journal_count(self, after: int, upto: int) -> int:
        """How many events come after a position and up to another."""
        self._check_open()
        return await self._backend.journal_count(after, upto)

    async def archived(self, upto: int) -> int:
        """Note that the journal is archived up to a position, and need be kept no longer for that."""
        self._check_open()
        bounds = await self._backend.bounds()
        if upto > bounds.last:
            raise InvalidInput(
                f"the journal ends at position {bounds.last}: nobody has archived up to {upto}"
            )
        return await self._backend.archived(upto)

    async def journal_bounds(self) -> Bounds:
        """Which positions the journal has."""
        self._check_open()
        return await self._backend.bounds()

    def watch(self, wanted: Wanted) -> Watch:
        """The events of the journal, as they are wanted."""
        self._check_open()
        return Watch(self, self._appends, wanted)

    def number(self, name: str) -> int:
        """The number of a queue, which is in the ids of its messages; QueueNotFound if there is none."""
        return self.directory.row(name).number

    def name(self, number: int) -> str:
        """The name of the queue of this number; QueueNotFound if there is none."""
        return self.directory.name(number)

    def id_of(self, number: int, sequence: int) -> MessageId:
        """The id of a message of this store."""
        return MessageId(self._backend.incarnation, number, sequence)

    def id_text(self, number: int, sequence: int) -> str:
        """The id of a message of this store, written out."""
        return id_text(self._backend.incarnation, number, sequence)

    def sequence_in(self, number: int, text: str) -> int:
        """The sequence that an id as text names in this queue; InvalidInput if it is no id."""
        return sequence_in(text, number, self._backend.incarnation, {})

    def sequence_of(self, number: int, message_id: MessageId) -> int:
        """The sequence an id names in this queue, else MessageNotFound."""
        former = self._backend.former.get(number, {})
        return sequence_of(message_id, number, self._backend.incarnation, former)

    async def ask(self, name: str, command: Command) -> Any:
        """The reply of a queue once it is durable; a refusal is raised."""
        return await self.post(self.number(name), command)

    async def settings(self, name: str) -> Settings:
        """The settings of a queue."""
        self._check_open()
        return self.directory.row(name).settings

    async def configure(self, name: str, settings: Settings) -> None:
        """Give a queue new settings."""
        self.directory.check_target(name, settings)
        await self.post(self.number(name), Configure(settings))
        self.directory.changed(name, settings)

    def post(self, number: int, command: Command) -> asyncio.Future[Any]:
        """Hand a command over: the reply comes once it is durable, a refusal as an error."""
        self._check_open()
        return self._ask(number, command)

    def post_many(self, number: int, commands: list[Command]) -> asyncio.Future[list[Any]]:
        """Hand many commands over at once, none of them a receive: a reply or an error for each."""
        self._check_open()
        reply: asyncio.Future[list[Any]] = self._loop.create_future()
        self.directory.actor(number).mailbox.put(Envelope.of_many(commands, reply))
        return reply

    def receive(self, name: str, command: Receive, wait_ms: int) -> Coroutine[Any, Any, list[Delivery]]:
        """Receive, waiting for something to come; empty when the time is over."""
        self._check_open()
        wait_until = None
        if wait_ms != 0:
            in_range("wait_ms", wait_ms, 0, MAX_SPAN_MS)
            wait_until = self.clock.now + wait_ms
        return self._receive(self.number(name), command, wait_until)

    async def receive_under(self, prefix: str, command: Receive, wait_ms: int) -> tuple[str, list[Delivery]]:
        """Receive from any queue under a prefix, least recently served first; which one, and what."""
        self._check_open()
        in_range("wait_ms", wait_ms, 0, MAX_SPAN_MS)
        found: list[tuple[str, list[Delivery]]] = [("", [])]
        with self._waiting():
            found.append(await self._prefixes.receive(prefix, command, self.clock, wait_ms))
        return found[-1]

    async def outcome(self, number: int, message: int, wait_ms: int) -> Outcome:
        """What came of a message, waiting until it is over; how far it is when the time is."""
        in_range("wait_ms", wait_ms, 0, MAX_SPAN_MS)
        told: Outcome
        if wait_ms == 0:
            told = await self.post(number, c.Outcome(message))
            return told
        wait_until = self.clock.now + wait_ms
        while True:
            with self._outcomes.on(number, message) as ended:
                told = await self.post(number, c.Outcome(message))
                if told.is_over or self.clock.now >= wait_until:
                    return told
                with self._waiting():
                    await until_set(ended, self.clock, wait_until)

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """A wait that ends when the node does."""
        with anyio.CancelScope() as waiting:
            self._waits.add(waiting)
            try:
                yield
            finally:
                self._waits.discard(waiting)

    def end_waits(self) -> None:
        """Answer all who wait for messages, now and from now on."""
        self.directory.end_waits()
        self._prefixes.end_waits()

    async def _receive(self, number: int, command: Receive, wait_until: int | None) -> list[Delivery]:
        reply: asyncio.Future[list[Delivery]] = self._loop.create_future()
        envelope = Envelope(command, reply, wait_until)
        actor = self.directory.actor(number)
        actor.mailbox.put(envelope)
        try:
            deliveries = await reply
        except asyncio.CancelledError:
            actor.leave(envelope)
            # The reply may have come just before its receiver was cancelled.
            if reply.done() and not reply.cancelled() and reply.exception() is None:
                self.directory.actor(number).give_back(reply.result())
            raise
        return deliveries

    def _ask(self, number: int, command: Command) -> asyncio.Future[Any]:
        reply: asyncio.Future[Any] = self._loop.create_future()
        self.directory.actor(number).mailbox.put(Envelope(command, reply))
        return reply

    async def _read_inbox(self) -> None:
        with self._waiting():
            await Inbox(self._backend, self.directory, self.clock).run()

    def _press(self, number: int) -> None:
        self.directory.press(number)

    def _ring(self, number: int) -> None:
        self.directory.ring(number)

    def _send_moves(self, number: int) -> None:
        if number not in self._couriers and self._open:
            self._couriers.add(number)
            self._tasks.start_soon(self._carry, number)

    async def _carry(self, number: int) -> None:
        post = Post(self._ask, self.number, self.id_text, self.clock)
        try:
            await Courier(number, post).run()
        finally:
            self._couriers.discard(number)

    def _check_open(self) -> None:
        if not self._open:
            raise Closed
