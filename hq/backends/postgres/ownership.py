"""Which node may write: a row per node, renewed by heartbeat, counts until an instant of Postgres's clock.

A queue's row names its owner. When a node has lapsed, another enters and claims its queues as it loads them;
what fences the former owner is the journal, in which a queue's next sequence can be written once. So belief
is needed for one thing alone, to answer from memory without an append; for that, a node counts as owner only
while its last renewal is young by its own monotonic clock. A node that finds its row gone is another node
when it enters again: it has a new id, and nothing it held before is its own.

For now one node serves at a time. Another waits until the first has lapsed, and gives up when it sees that
the first is alive.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from time import monotonic, time
from typing import Any, NamedTuple
from uuid import uuid4

import anyio

from hq.backends.postgres import statements as sql
from hq.backends.postgres.connections import Connection, Pool
from hq.errors import ClockOff, DatabaseInUse, StorageError

log = logging.getLogger("hq.ownership")
_LOOK_S = 0.25
_MOST_OFF_S = 1.0


class Term(NamedTuple):
    """How long a renewal counts, and how much of that a node leaves unused."""

    time_s: float = 10.0
    margin_s: float = 2.0

    @property
    def heartbeat_s(self) -> float:
        """Often enough that a few may fail."""
        return (self.time_s - self.margin_s) / 4


class Ownership:
    """The row of this process, as long as it is entered."""

    def __init__(self, pool: Pool, term: Term) -> None:
        self.node = uuid4().hex
        self._pool = pool
        self._term = term
        self._told = f"process {os.getpid()} on {socket.gethostname()}"
        self._sure_until = 0.0
        self._queues: set[int] = set()
        self._beating: asyncio.Task[None] | None = None

    async def enter(self) -> None:
        """Enter when no other node lives; raises DatabaseInUse if one is seen to live on."""
        seen: dict[str, int] = {}
        while others := await self._try_to_enter():
            for node, told, left_s, renewals in others:
                if renewals > seen.setdefault(node, renewals):
                    raise DatabaseInUse(f"{told} serves this database; stop it, or connect to it instead")
                log.info("waiting for another node to lapse", extra={"other": told, "left_s": left_s})
            await anyio.sleep(_LOOK_S)
        self._beating = asyncio.create_task(self._beat())

    async def leave(self) -> None:
        """Let others enter at once."""
        await self.fall_silent()
        self._sure_until = 0.0
        try:
            async with self._pool.lend() as connection:
                await connection.rows(sql.LEAVE, {"node": self.node})
        except StorageError:
            log.warning("this node could not leave, and will lapse", exc_info=True)

    async def fall_silent(self) -> None:
        """Renew no more, and lapse in time."""
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.wait([self._beating])
            self._beating = None

    def hold(self, queue: int) -> None:
        """A queue was claimed for this node."""
        self._queues.add(queue)

    def owns(self, queue: int) -> bool:
        """Whether a queue is certainly still this node's."""
        return queue in self._queues and monotonic() < self._sure_until

    @property
    def is_sure(self) -> bool:
        """Whether this node has certainly not lapsed."""
        return monotonic() < self._sure_until

    async def _try_to_enter(self) -> list[Any]:
        """Enter, or tell who is there; a lapsed node's row is removed, by which it learns of it."""
        begun = monotonic()
        async with self._pool.lend() as connection, connection.transaction():
            await connection.rows(sql.LOCK_DOOR, connection.schema.locks)
            await connection.rows(sql.REMOVE_LAPSED)
            others = await connection.rows(sql.OTHERS, {"node": self.node})
            if not others:
                values = {"node": self.node, "told": self._told, "time_s": self._term.time_s}
                await connection.rows(sql.ENTER, values)
        if not others:
            self._renewed(begun)
        return others

    async def _beat(self) -> None:
        while True:
            await anyio.sleep(self._term.heartbeat_s)
            try:
                await self._renew()
            except StorageError:
                log.warning("this node's ownership could not be renewed", exc_info=True)

    async def _renew(self) -> None:
        begun = monotonic()
        async with self._pool.lend() as connection:
            values = {"node": self.node, "time_s": self._term.time_s}
            if await connection.rows(sql.RENEW, values):
                self._renewed(begun)
                return
        log.warning("this node has lapsed and lost its queues")
        self._sure_until = 0.0
        self._queues.clear()
        self.node = uuid4().hex
        await self._try_to_enter()

    def _renewed(self, begun: float) -> None:
        self._sure_until = begun + self._term.time_s - self._term.margin_s


async def check_clock(connection: Connection, wall: Callable[[], float] = time) -> None:
    """Refuse to work with a clock far from Postgres's: leases and delays are told by it."""
    before = wall()
    [(theirs,)] = await connection.rows(sql.CLOCK)
    after = wall()
    off = max(before - theirs, theirs - after)
    if off > _MOST_OFF_S:
        raise ClockOff(
            f"this machine's clock and Postgres's are {off:.1f} s apart, more than {_MOST_OFF_S:g} s;"
            " set them right"
        )
