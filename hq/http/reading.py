"""Reading the body of a request within its bounds: so many bytes, so much time.

One timer looks at all bodies under way, because a timer for each would cost more than reading most of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from hq.http.calls import Terms
from hq.http.problems import BodyTooLarge, RequestTimeout

Receive = Callable[[], Awaitable[Any]]
LOOK_S = 0.25


class Gone(Exception):
    """The client has hung up."""


class Bodies:
    """The bodies that are being read."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._begun: dict[asyncio.Task[Any], float] = {}
        self._late: set[asyncio.Task[Any]] = set()
        self._looking = False

    async def read(self, receive: Receive) -> bytes:
        """The whole body; BodyTooLarge, RequestTimeout or Gone if it does not come."""
        task = asyncio.current_task()
        assert task is not None
        loop = task.get_loop()
        self._begun[task] = loop.time()
        if not self._looking:
            self._looking = True
            loop.call_later(LOOK_S, self._look, loop)
        try:
            return await self._read(receive)
        except asyncio.CancelledError:
            if task not in self._late:
                raise
            task.uncancel()
            raise RequestTimeout from None
        finally:
            del self._begun[task]
            self._late.discard(task)

    async def _read(self, receive: Receive) -> bytes:
        parts: list[bytes] = []
        left = self._terms.max_body_bytes
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Gone
            body: bytes = message.get("body", b"")
            left -= len(body)
            if left < 0:
                raise BodyTooLarge
            if not message.get("more_body", False):
                return b"".join((*parts, body)) if parts else body
            parts.append(body)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give up on those that take too long; look again while there are any."""
        overdue = loop.time() - self._terms.read_timeout_s
        for task, begun in list(self._begun.items()):
            if begun <= overdue and task not in self._late:
                self._late.add(task)
                task.cancel()
        self._looking = bool(self._begun)
        if self._looking:
            loop.call_later(LOOK_S, self._look, loop)
