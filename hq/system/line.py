"""The line from every handle of a system to its node, behind the guard."""

from __future__ import annotations

from typing import Any

import anyio

from hq.domain.commands import Command
from hq.domain.ids import MessageId
from hq.system.guard import Guard
from hq.system.keeper import Keeper
from hq.system.port import Port


class Line:
    """Asks, and keeps the leases of those who asked."""

    __slots__ = ("configuring", "guard", "keeper", "node")

    def __init__(self, node: Port) -> None:
        self.guard = Guard()
        self.node = node
        self.keeper = Keeper(node)
        self.configuring = anyio.Lock()

    def number(self, queue: str) -> int:
        """The number of a queue. Never kept: a queue that is made anew has another."""
        self.guard.check()
        return self.node.number(queue)

    async def ask(self, queue: str, command: Command) -> Any:
        """The reply of a queue."""
        return await self.node.post(self.number(queue), command)

    def id_of(self, number: int, sequence: int) -> MessageId:
        """The id of a message."""
        return self.node.id_of(number, sequence)

    def sequence_of(self, number: int, message_id: MessageId) -> int:
        """The sequence an id names in this queue, else MessageNotFound."""
        return self.node.sequence_of(number, message_id)
