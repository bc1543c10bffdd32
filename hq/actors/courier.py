"""The courier of a queue: carries its moves to their targets, one after the other.

An actor never awaits another actor. The courier asks the source for the next move, gives it to the target,
and tells the source how that went; whatever is asked twice after a crash is told apart by its number.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from hq.actors.clock import Clock
from hq.domain.commands import Command, NextMove, ReturnMove, SettleMove, TakeMove
from hq.domain.replies import Carried
from hq.errors import Closed, HQError, QueueNotFound

log = logging.getLogger("hq.courier")
PAUSE_MS = 1_000


class Post(NamedTuple):
    """How a courier reaches queues."""

    ask: Callable[[int, Command], Awaitable[Any]]
    number: Callable[[str], int]
    id_of: Callable[[int, int], str]
    clock: Clock


class Courier:
    """Carries what one queue has to send; ends when there is nothing more."""

    def __init__(self, source: int, post: Post) -> None:
        self._source = source
        self._post = post

    async def run(self) -> None:
        """Carry until all is sent; a failure is tried again after a pause."""
        while True:
            try:
                carried = await self._post.ask(self._source, NextMove())
                if carried is None:
                    return
                await self._carry(carried)
            except (Closed, QueueNotFound):
                return
            except HQError:
                log.warning("a move waits", extra={"queue": self._source}, exc_info=True)
                await self._post.clock.until(self._post.clock.now + PAUSE_MS)

    async def _carry(self, carried: Carried) -> None:
        try:
            target = self._post.number(carried.target)
        except QueueNotFound:
            await self._post.ask(self._source, ReturnMove(carried.number))
            return
        message = carried.message
        assert message.payload is not None
        origin_id = message.origin_id or self._post.id_of(self._source, message.sequence)
        move = TakeMove(
            self._source, carried.number, message.payload, message.options, origin_id, message.history
        )
        try:
            await self._post.ask(target, move)
        except QueueNotFound:
            await self._post.ask(self._source, ReturnMove(carried.number))
        else:
            await self._post.ask(self._source, SettleMove(carried.number))
