"""What one life of an actor takes from the inbox: the rows it was given, in their order.

A row is taken by an append that names it. While the queue has no room the first row waits, and with it all
behind it. Of a life that was lost the rows under way are never idle: the next life reads the inbox anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hq.backends.port import InboxRow

if TYPE_CHECKING:
    from hq.actors.queue import QueueActor


class Intake:
    """Given rows by the node's reader of the inbox, worked through by the actor."""

    def __init__(self, actor: QueueActor) -> None:
        self._actor = actor
        self._rows: deque[InboxRow] = deque()
        self._fresh = False
        self._full = False
        self._under_way = 0
        self.has_ended = False
        """Whether the life it belonged to is over."""

    @property
    def is_idle(self) -> bool:
        """Whether everything it was given is durable, so that it may be given more."""
        return not self._rows and not self._under_way

    def offer(self, rows: Iterable[InboxRow]) -> None:
        """Give it rows, oldest first."""
        self._rows.extend(rows)
        self._fresh = True
        self.nudge()

    def nudge(self) -> None:
        """There may be room again."""
        if self._rows:
            self._full = False
            self._actor.notify()

    def landed(self, count: int) -> None:
        """So many rows have left the inbox."""
        self._under_way -= count

    async def run(self) -> None:
        """Take rows until there are none, or no room."""
        if not self._rows or self._full or self._actor.stopping:
            return
        if self._fresh:
            self._fresh = False
            await self._actor.fetch_for(row.command for row in self._rows)
        while self._rows and not self._full:
            if await self._actor.take_in(self._rows[0]):
                self._rows.popleft()
                self._under_way += 1
            else:
                self._full = True
