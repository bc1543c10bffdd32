"""What the handles of a system ask: a node in this process (hq.actors.node), or one elsewhere (hq.client).

Within a port a queue has a number and a message a sequence. Both mean something to that port alone; names and
message ids are what everybody knows.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol

from hq.actors.clock import Clock
from hq.actors.watch import Event, Wanted
from hq.backends.port import Examined, QueueRow
from hq.domain.commands import Command, Receive
from hq.domain.ids import MessageId
from hq.domain.replies import Delivery, Outcome
from hq.domain.settings import Settings


class Watching(Protocol):
    """A place in the journal that moves on as it is read."""

    async def begin(self) -> None:
        """Take up the place: what is appended from now on will be told."""

    async def page(self) -> list[Event]:
        """The next wanted events, waited for. Whoever gives up waiting may ask again."""

    async def aclose(self) -> None:
        """Let go of whatever it is read through."""


class Port(Protocol):
    """Every verb of the handles comes down to these."""

    @property
    def clock(self) -> Clock:
        """The clock leases end by."""

    async def examine(self, most: int) -> Examined:
        """Read all that is stored: what storage is, and what of it cannot be read, for so many things."""

    async def ready(self) -> str:
        """What an answer survives: `power`, `process` or `nothing`; an error if nothing can be stored now."""

    def number(self, name: str) -> int:
        """The number of a queue."""

    def id_of(self, number: int, sequence: int) -> MessageId:
        """The id of a message."""

    def sequence_of(self, number: int, message_id: MessageId) -> int:
        """The sequence an id names in a queue; MessageNotFound if it is known to name none."""

    def post(self, number: int, command: Command) -> Awaitable[Any]:
        """The reply to a command once it is durable; a refusal is raised."""

    def post_many(self, number: int, commands: list[Command]) -> Awaitable[list[Any]]:
        """The same for many of one kind at once: a reply or an error for each."""

    async def receive(self, name: str, command: Receive, wait_ms: int) -> list[Delivery]:
        """Receive, waiting for something to come."""

    async def receive_under(self, prefix: str, command: Receive, wait_ms: int) -> tuple[str, list[Delivery]]:
        """Receive from any queue under a prefix; which one, and what."""

    async def outcome(self, number: int, message: int, wait_ms: int) -> Outcome:
        """What came of a message, waiting until it is over; how far it is when the time is."""

    async def create(self, name: str, settings: Settings) -> QueueRow:
        """Make a queue, or find it if it has these settings."""

    async def drop(self, name: str) -> None:
        """Delete a queue with all it holds."""

    async def queues(self) -> list[QueueRow]:
        """All queues, by number."""

    async def settings(self, name: str) -> Settings:
        """The settings of a queue."""

    async def configure(self, name: str, settings: Settings) -> None:
        """Give a queue new settings, in place of those last asked for."""

    async def compact(self, name: str) -> None:
        """Give free space of the store of a queue back, beside all other work."""

    def watch(self, wanted: Wanted) -> Watching:
        """The events of the journal."""
