"""The one connection that writes a SQLite file: appends, transactions, and the fences between writers.

What is written is decided and sent under one lock. An append is never torn by its caller's cancellation: it
ends, or its deadline passes and it is told as unknown, because the statement runs on in its thread.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio

from hq.backends.codec import UNSTORABLE, encode_events
from hq.backends.port import Batch, Ending
from hq.backends.sqlite import statements as sql
from hq.backends.sqlite.connections import Connection
from hq.backends.sqlite.fences import Fence, read_fence
from hq.backends.sqlite.trouble import ending_of
from hq.errors import StorageError

log = logging.getLogger("hq.sqlite")

# SQLite binds at least 32,766 values; a journal row has seven.
ROWS_AT_ONCE = 1_000
# So many journal rows may be walked to find a queue's; beyond that they are indexed first.
INDEX_BEHIND = 1_000
INDEX_AT_ONCE = 10_000


class Writer:
    """All writing to one file."""

    def __init__(self, connection: Connection, deadline_s: float) -> None:
        self.connection = connection
        self._deadline_s = deadline_s
        self._turn = anyio.Lock(fast_acquire=True)
        self._fences: dict[int, Fence] = {}
        self.appended_bytes = 0

    async def append(self, batches: Sequence[Batch]) -> list[Ending]:
        """Write batches to the journal, each ending by itself.

        Nothing in it can be cancelled but the wait for its turn: what it awaits is shielded where it is.
        """
        endings: list[Ending] = []
        async with self._turn:
            for start in range(0, len(batches), ROWS_AT_ONCE):
                endings += await self._append(batches[start : start + ROWS_AT_ONCE])
        return endings

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A transaction of its own, that appends wait for and cancellation does not tear."""
        async with self._turn:
            with anyio.CancelScope(shield=True):
                async with self.connection.transaction():
                    yield self.connection

    async def script(self, text: str) -> None:
        """Run a script in autocommit: a statement without columns is stepped to its end here alone."""
        async with self._turn:
            with anyio.CancelScope(shield=True):
                await self.connection.script(text)

    async def catch_up(self, queue: int) -> Fence | None:
        """Read a queue's fence behind whatever was handed over before; None if there is no such queue."""
        fence = None
        async with self._turn:
            with anyio.CancelScope(shield=True):
                self._fences.pop(queue, None)
                if await self._behind() > INDEX_BEHIND:
                    async with self.connection.transaction():
                        await index_journal(self.connection)
                fence = await self._fence(queue)
        return fence

    async def index_if_behind(self) -> None:
        """Index the journal inside the caller's transaction, if there is enough of it to be worth it."""
        if await self._behind() > INDEX_BEHIND:
            await index_journal(self.connection)

    def forget(self, queue: int) -> None:
        """The queue's fence must be read again."""
        self._fences.pop(queue, None)

    async def _append(self, batches: Sequence[Batch]) -> list[Ending]:
        fences: dict[int, Fence] = {}
        values: list[object] = []
        endings = [await self._admit(batch, fences, values) for batch in batches]
        if not fences:
            return endings
        ending = await self._insert(values, list(fences))
        if ending is Ending.DURABLE:
            self._fences.update(fences)
            self.appended_bytes += sum(len(body) for body in values[6::7] if isinstance(body, bytes))
        return [ending if admitted is Ending.DURABLE else admitted for admitted in endings]

    async def _admit(self, batch: Batch, fences: dict[int, Fence], values: list[object]) -> Ending:
        """Whether a batch may be written, as the ending it would have; its values join the others."""
        queue, epoch, events, _ = batch
        try:
            fence = fences.get(queue) or self._fences.get(queue)
            if fence is None:
                with anyio.CancelScope(shield=True):
                    fence = await self._fence(queue)
        except StorageError:
            log.exception("a fence could not be read", extra={"queue": queue})
            return Ending.REFUSED
        if fence is None or not fence.admits(batch):
            return Ending.NOT_OWNER
        try:
            body = encode_events(queue, epoch, events)
        except UNSTORABLE:
            log.exception("a batch could not be encoded", extra={"queue": queue})
            return Ending.REFUSED
        fences[queue] = fence = fence.after(batch)
        values += (queue, events[0].sequence, fence.last, epoch, fence.epoch, events[-1].at, body)
        return Ending.DURABLE

    async def _insert(self, values: list[object], queues: list[int]) -> Ending:
        ending = Ending.UNKNOWN
        try:
            with anyio.move_on_after(self._deadline_s, shield=True):
                await self.connection.driver.execute_fetchall(sql.append_rows(len(values) // 7), values)
                ending = Ending.DURABLE
        except sqlite3.Error as error:
            ending = ending_of(error)
            log.exception("an append failed", extra={"queues": queues, "ending": ending.value})
        except OverflowError:
            log.exception("an append holds a number that SQLite does not", extra={"queues": queues})
            ending = Ending.REFUSED
        finally:
            if ending is Ending.UNKNOWN:
                for queue in queues:
                    self._fences.pop(queue, None)
        return ending

    async def _fence(self, queue: int) -> Fence | None:
        fence = await read_fence(self.connection, queue)
        if fence is not None:
            self._fences[queue] = fence
        return fence

    async def _behind(self) -> int:
        [(behind,)] = await self.connection.rows(sql.INDEX_BEHIND)
        count: int = behind
        return count


async def index_journal(connection: Connection) -> bool:
    """Index a bounded part of the journal, inside the caller's transaction; whether there was any."""
    [(up_to,)] = await connection.rows(sql.INDEX_UP_TO, {"limit": INDEX_AT_ONCE})
    if up_to is None:
        return False
    await connection.rows(sql.INDEX_JOURNAL, {"up_to": up_to})
    await connection.rows(sql.SET_INDEXED, {"up_to": up_to})
    return True
