"""Consume: messages one after the other, their leases renewed until they are settled.

An iterator and not an async generator, for a generator must not hold a task group over its yields: renewing
is the keeper's task, which lives as long as the system.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio

from hq.domain.commands import MAX_RECEIVE
from hq.domain.settings import MAX_LEASE_MS, MAX_SPAN_MS, in_range, optional_in_range
from hq.errors import Closed, HQError, Unreachable
from hq.system.keeper import Hold
from hq.system.lease import UNHEARD
from hq.system.line import Line
from hq.system.message import Message

if TYPE_CHECKING:
    from hq.system.queue import Queue

log = logging.getLogger("hq.consume")

POLL_MS = 60_000
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0


@dataclass(frozen=True, slots=True)
class Terms:
    """How a consumer receives."""

    concurrency: int
    wait_ms: int | None
    lease_ms: int | None
    holder: str | None
    give_up_ms: int | None = None

    def __post_init__(self) -> None:
        in_range("concurrency", self.concurrency, 1, MAX_RECEIVE)
        optional_in_range("wait_ms", self.wait_ms, 0, MAX_SPAN_MS)
        optional_in_range("lease_ms", self.lease_ms, 1, MAX_LEASE_MS)
        optional_in_range("give_up_ms", self.give_up_ms, 0, MAX_SPAN_MS)


class Consumer:
    """`async for message in consumer`, or several tasks doing so; `async with consumer` closes it for sure.

    At most `concurrency` messages are held at once: those fetched ahead and those handed out and not settled.
    Leaving the loop gives back what was not handed out. It ends when the system is closed, or, if `wait_ms`
    is given, when nothing came for so long. A server that does not answer is waited for, however long it is
    gone; with `give_up_ms` no longer than that, then Unreachable is raised.
    """

    def __init__(self, queue: Queue, line: Line, terms: Terms) -> None:
        self._queue = queue
        self._clock = line.node.clock
        self._gone_since: int | None = None
        self._pause_s = FIRST_PAUSE_S
        self._guard, self._keeper = line.guard, line.keeper
        self._terms = terms
        self._hold = Hold(queue.name)
        self._turn = anyio.Lock()
        self._fetching = anyio.CancelScope()
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        # One task fetches; the others wait for what it brings.
        async with self._turn:
            while not self._closed:
                message = self._hold.hand_out()
                if message is not None:
                    return message
                with anyio.CancelScope() as self._fetching:
                    await self._fetch()
            # A fetch may have brought something while the consumer was being closed.
            await self._give_back()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End the iteration and give back what was not handed out."""
        self._closed = True
        self._fetching.cancel()
        await self._give_back()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        # A loop that was left without aclose: whoever drops the consumer may be in any thread.
        if self._hold.waiting:
            self._guard.call_soon(self._keeper.abandon, self._hold)

    async def _give_back(self) -> None:
        with anyio.CancelScope(shield=True):
            await self._keeper.give_back(self._hold)

    async def _fetch(self) -> None:
        """Receive as many as there is room for; with no room, wait until a message is settled."""
        terms = self._terms
        room = terms.concurrency - len(self._hold)
        if room <= 0:
            await self._hold.changed.wait()
            return
        wait_ms = self._wait_ms()
        try:
            received = await self._queue.receive(
                room, wait_ms=wait_ms, lease_ms=terms.lease_ms, holder=terms.holder
            )
        except Closed:
            self._closed = True
            return
        except UNHEARD as error:
            await self._bear(error)
            return
        self._answered()
        self._hold.waiting.extend(received)
        self._keeper.keep(self._hold, [message.lease for message in received])
        if not received and terms.wait_ms is not None:
            self._closed = True

    def _wait_ms(self) -> int:
        """How long to wait for the next messages; for a server that is gone, only as long as is left."""
        terms = self._terms
        wait_ms = POLL_MS if terms.wait_ms is None else terms.wait_ms
        if self._gone_since is None or terms.give_up_ms is None:
            return wait_ms
        return min(wait_ms, max(0, self._gone_since + terms.give_up_ms - self._clock.now))

    async def _bear(self, error: HQError) -> None:
        """The server does not answer: go on, or give up. What it may have leased comes back by itself."""
        now = self._clock.now
        if self._gone_since is None:
            self._gone_since = now
            told = {"queue": self._queue.name, "code": error.code}
            log.warning("a consumer waits for its server, which does not answer", extra=told)
        if self._terms.give_up_ms is not None and now - self._gone_since >= self._terms.give_up_ms:
            self._closed = True
            raise Unreachable("The server does not answer; what it may have leased comes back.") from error
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, LONGEST_PAUSE_S)
        await anyio.sleep(pause_s)

    def _answered(self) -> None:
        if self._gone_since is not None:
            log.info("the server of a consumer answers again", extra={"queue": self._queue.name})
        self._gone_since = None
        self._pause_s = FIRST_PAUSE_S
