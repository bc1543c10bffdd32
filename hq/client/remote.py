"""A node elsewhere: what hq.open gives its handles when it is given the address of a server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import fields
from typing import Any

import anyio
import anyio.to_thread
import httpx

from hq.actors.clock import Clock
from hq.actors.watch import Wanted
from hq.backends.port import QueueRow
from hq.client import answers, requests
from hq.client.calls import Address, Calls, Patience, connections
from hq.client.clock import RemoteClock
from hq.client.errors import Unanswered, Unsent
from hq.client.requests import Ask
from hq.client.watch import RemoteWatch
from hq.domain.commands import Command, Receive, Release
from hq.domain.ids import MessageId
from hq.domain.replies import Delivery, Outcome
from hq.domain.settings import MAX_SPAN_MS, Settings, in_range
from hq.errors import Closed, HQError, OutcomeUnknown, Unreachable, UnsupportedUrl

log = logging.getLogger("hq.client")

CALLS = 100
"""Connections for what is answered at once."""
WAITS = 1_000
"""Connections for what waits, long polls and events, so that it keeps nobody else waiting."""
POLL_MS = 30_000
"""How long one request may wait for messages; proxies let go after a minute."""
PAGE = 1_000
GRACE_S = 10.0
ON_ITS_WAY_S = 0.05
"""How long an answer may take that was on its way when its caller gave up."""
SECOND_MS = 1_000
DEFAULT_PATIENCE = Patience()
GREETING = Ask("GET", "/healthz", answers.now)
RARE = frozenset({"configured"})
"""Events that are told so seldom that whoever asks for them only wants to know that somebody is there."""


@asynccontextmanager
async def remote(
    url: str, clock: Clock | None = None, patience: Patience = DEFAULT_PATIENCE
) -> AsyncIterator[RemoteNode]:
    """The node at this URL, that answers."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise UnsupportedUrl(f"{url!r} is no URL: {error}") from None
    if not parsed.host or parsed.query or parsed.fragment:
        raise UnsupportedUrl(f"{url!r} is no address of a server; {UnsupportedUrl.__doc__}")
    async with connected(Address(url), clock, patience) as node:
        await node.greet()
        yield node


@asynccontextmanager
async def connected(
    address: Address, clock: Clock | None, patience: Patience = DEFAULT_PATIENCE
) -> AsyncIterator[RemoteNode]:
    """The node at this address, whether it answers or not."""
    calls = await anyio.to_thread.run_sync(connections, address, patience, CALLS)
    waits = await anyio.to_thread.run_sync(connections, address, patience, WAITS)
    async with calls, waits:
        known = clock or RemoteClock()
        node = RemoteNode(Calls(calls, known, patience), Calls(waits, known, patience), known)
        try:
            yield node
        finally:
            with anyio.CancelScope(shield=True):
                await node.close()


class RemoteNode:
    """Turns commands into requests and answers into replies. It knows queues by name and messages by id.

    The numbers of its queues are its own, below zero: they stand for names. The sequence of a message is all
    of its id. So it needs to know nothing of the store, and nothing it knows grows old.
    """

    def __init__(self, calls: Calls, waits: Calls, clock: Clock) -> None:
        self.clock = clock
        self._calls = calls
        self._waits = waits
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._asked: dict[str, Settings] = {}
        self._waiting: set[anyio.CancelScope] = set()
        self._lost = False
        self._under_way = 0
        self._idle = anyio.Event()
        self._closed = False

    async def greet(self) -> None:
        """See that there is a server, and what time it has; Unreachable if there is none for a while."""
        self._hear(await self._calls.send(GREETING))

    async def greet_now(self) -> None:
        """The same; Unsent if there is none now."""
        try:
            self._hear(await self._calls.once(GREETING))
        except Unanswered as error:
            raise Unsent(str(error)) from error

    async def gone(self) -> None:
        """Return when the server has gone."""
        await self.watch(Wanted(kinds=RARE)).gone()

    async def close(self) -> None:
        """End all waits with nothing, and let what was asked be answered."""
        self._closed = True
        for scope in list(self._waiting):
            scope.cancel()
        if self._under_way:
            with anyio.move_on_after(GRACE_S):
                await self._idle.wait()

    def number(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            self._names.append(name)
            number = self._numbers[name] = -len(self._names)
        return number

    def id_of(self, number: int, sequence: int) -> MessageId:  # noqa: ARG002 - an id says it all
        return MessageId.parse(answers.id_text(sequence))

    def sequence_of(self, number: int, message_id: MessageId) -> int:  # noqa: ARG002 - as above
        return answers.number_of(str(message_id))

    async def post(self, number: int, command: Command) -> Any:
        return await self._send(requests.ask(self._name(number), command))

    async def post_many(self, number: int, commands: list[Command]) -> list[Any]:
        """In their order: where one request ends without an answer, what comes after it is not sent."""
        told: list[Any] = []
        for ask, count in requests.ask_many(self._name(number), commands):
            try:
                told += await self._send(ask)
            except (OutcomeUnknown, Unreachable) as error:
                told += [error] * count
                return told + [Unreachable() for _ in commands[len(told) :]]
        return told

    async def receive(self, name: str, command: Receive, wait_ms: int) -> list[Delivery]:
        _, deliveries = await self._receive(
            lambda left_ms: requests.poll(f"/queues/{name}/poll", command, left_ms), wait_ms
        )
        return deliveries

    async def receive_under(self, prefix: str, command: Receive, wait_ms: int) -> tuple[str, list[Delivery]]:
        return await self._receive(
            lambda left_ms: requests.poll("/receive", command, left_ms, prefix), wait_ms
        )

    async def outcome(self, number: int, message: int, wait_ms: int) -> Outcome:
        in_range("wait_ms", wait_ms, 0, MAX_SPAN_MS)
        ends_at, pause = self.clock.now + wait_ms, Pause()
        name = self._name(number)
        told: Outcome = await self._send(requests.outcome(name, message, 0))
        with self.waiting() as wait:
            while not told.is_over and self.clock.now < ends_at:
                left_ms = min(ends_at - self.clock.now, POLL_MS)
                try:
                    told = await self._waits.once(
                        requests.outcome(name, message, left_ms), left_ms / SECOND_MS
                    )
                except (Unsent, Unanswered):
                    await pause()
        if wait.cancelled_caught:
            raise Closed
        return told

    async def create(self, name: str, settings: Settings) -> QueueRow:
        row: QueueRow = await self._send(requests.create(name, settings))
        return row

    async def drop(self, name: str) -> None:
        await self._send(Ask("DELETE", f"/queues/{name}", repeat=requests.Repeat.ONCE))

    async def queues(self) -> list[QueueRow]:
        rows: list[QueueRow] = []
        page: list[QueueRow] | None = None
        while page is None or len(page) == PAGE:
            after = rows[-1].name if rows else ""
            query = {"limit": PAGE, "after": after}
            page = await self._send(Ask("GET", "/queues", answers.queue_rows, query=query))
            rows += page
        return sorted(rows, key=lambda row: row.number)

    async def settings(self, name: str) -> Settings:
        row: QueueRow = await self._send(Ask("GET", f"/queues/{name}", answers.queue_row))
        self._asked[name] = row.settings
        return row.settings

    async def configure(self, name: str, settings: Settings) -> None:
        """Only what differs from the settings last asked for is said: others may have changed the rest."""
        before = self._asked.pop(name)
        changes = {
            one.name: getattr(settings, one.name)
            for one in fields(Settings)
            if getattr(settings, one.name) != getattr(before, one.name)
        }
        if changes:
            await self._send(requests.configure(name, changes))

    def watch(self, wanted: Wanted) -> RemoteWatch:
        return RemoteWatch(self._waits.http, wanted, self.waiting)

    @contextmanager
    def waiting(self) -> Iterator[anyio.CancelScope]:
        """A wait that ends when this node is closed; Closed if it is already."""
        if self._closed:
            raise Closed
        with anyio.CancelScope() as scope:
            self._waiting.add(scope)
            try:
                yield scope
            finally:
                self._waiting.discard(scope)

    async def _send(self, ask: Ask) -> Any:
        if self._closed:
            raise Closed
        self._under_way += 1
        try:
            return await self._calls.send(ask)
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()
                self._idle = anyio.Event()

    async def _receive(self, poll: Callable[[int], Ask], wait_ms: int) -> tuple[str, list[Delivery]]:
        found: tuple[str, list[Delivery]]
        if wait_ms == 0:
            found = await self._taken(self._send(poll(0)))
            return found
        in_range("wait_ms", wait_ms, 0, MAX_SPAN_MS)
        found = "", []
        with self.waiting():
            found = await self._long_poll(poll, self.clock.now + wait_ms)
        return found

    async def _long_poll(self, poll: Callable[[int], Ask], ends_at: int) -> tuple[str, list[Delivery]]:
        """Poll after poll, until something comes or the time is over.

        A poll whose answer is lost may have leased something, which comes back when its lease ends. Nobody is
        served by giving up the wait for that: the next poll goes to whoever answers now.
        """
        pause = Pause()
        while True:
            left_ms = min(max(0, ends_at - self.clock.now), POLL_MS)
            began = self.clock.now
            try:
                polled = self._waits.once(poll(left_ms), left_ms / SECOND_MS)
                found: tuple[str, list[Delivery]] = await self._taken(polled)
            except (Unsent, Unanswered) as error:
                if not self._lost:
                    log.info("a long poll lost its server", extra={"reason": str(error)})
                self._lost = True
                if self.clock.now >= ends_at:
                    raise Unreachable(
                        "The server does not answer; what it may have leased comes back."
                    ) from error
            else:
                self._lost = False
                if found[1] or self.clock.now >= ends_at:
                    return found
                # A server that stops ends its long polls before their time.
                if self.clock.now - began >= left_ms:
                    pause = Pause()
                    continue
            await pause()

    async def _taken(self, receiving: Coroutine[Any, Any, Any]) -> Any:
        """What a receive brings; when its caller gives up, it hangs up, or gives back what is on its way."""
        received = asyncio.ensure_future(receiving)
        try:
            return await asyncio.shield(received)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await asyncio.wait((received,), timeout=ON_ITS_WAY_S)
                if not received.cancel() and received.exception() is None:
                    await self._give_back(*received.result())
                await asyncio.wait((received,))
            raise

    async def _give_back(self, name: str, deliveries: list[Delivery]) -> None:
        releases: list[Command] = [Release(one.message, one.token) for one in deliveries]
        for ask, _ in requests.ask_many(name, releases) if releases else ():
            # If nobody hears it, the leases end by themselves.
            with suppress(HQError):
                await self._calls.send(ask)

    def _hear(self, now: int) -> None:
        if isinstance(self.clock, RemoteClock):
            self.clock.hear(now)

    def _name(self, number: int) -> str:
        return self._names[-number - 1]


class Pause:
    """Waits, longer each time up to a second, so that a server that is away is not asked without end."""

    def __init__(self) -> None:
        self._seconds = 0.02

    def __call__(self) -> Awaitable[None]:
        seconds, self._seconds = self._seconds, min(1.0, self._seconds * 2)
        return anyio.sleep(seconds)
