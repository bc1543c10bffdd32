"""SQLite: the port over one file. One connection writes, a few read, and one process holds them.

An append is one statement in autocommit, so it costs one sync however many queues it carries. A database
that another process holds, that is damaged, read-only or of a newer hq is told when it is opened.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from hq.backends.answers import answers
from hq.backends.codec import decode_row, decode_settings, decode_snapshot, encode_settings
from hq.backends.damage import damage
from hq.backends.port import (
    Batch,
    Bounds,
    Ending,
    InboxRow,
    JournalEntry,
    JournalRow,
    Loaded,
    QueueRow,
    Retention,
)
from hq.backends.sqlite import statements as sql
from hq.backends.sqlite import tails
from hq.backends.sqlite.backups import copy_file, grouped
from hq.backends.sqlite.chunks import write_chunk
from hq.backends.sqlite.connections import Connection, Readers, connect
from hq.backends.sqlite.lock import ProcessLock
from hq.backends.sqlite.opening import Durability, Limits, make_file, prepare
from hq.backends.sqlite.pruning import Pruning
from hq.backends.sqlite.writer import Writer
from hq.domain.checkpoint import Chunk, Snapshot
from hq.domain.events import Event
from hq.domain.lookups import Found, Lookup
from hq.domain.settings import Settings
from hq.errors import QueueExists, QueueNotFound

_TOLD = (
    "journal_mode", "synchronous", "foreign_keys", "busy_timeout", "journal_size_limit", "auto_vacuum",
    "page_size", "page_count", "freelist_count", "max_page_count",
)  # fmt: skip
DEFAULT_LIMITS = Limits()


class SqliteBackend:
    """All queues of one file. `incarnation` is the store's, known once it is open."""

    # One connection writes.
    lines = 1
    # Nor does an application write to the file beside hq.
    has_inbox = False

    def __init__(
        self,
        path: str | Path,
        *,
        durability: Durability = Durability.POWER,
        readers: int = 2,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._path = Path(path).absolute()
        self._durability = durability
        self.durability = durability.value
        self._limits = limits
        self._lock = ProcessLock(self._path)
        self._readers = Readers(self._path, readers, limits.deadline_s)
        self._writer: Writer | None = None
        self._pruning: Pruning | None = None
        self._numbers: set[int] = set()
        self.incarnation = 0
        self.former: Mapping[int, Mapping[int, int]] = {}

    async def open(self) -> None:
        """Take the file, make or migrate it, and check that it keeps what it is told."""
        await anyio.to_thread.run_sync(self._take)
        try:
            connection = await connect(self._path, "rw", self._limits.deadline_s)
            self._writer = Writer(connection, self._limits.deadline_s)
            self.incarnation = await prepare(connection, self._path, self._durability, self._limits)
            await self._readers.open()
            self.former = grouped(await connection.rows(sql.FORMER))
            await self.queues()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.close()
            raise

    async def close(self) -> None:
        """Let go of everything; the writer last, so that it leaves no write-ahead log behind."""
        await self._readers.close()
        if self._writer is not None:
            await self._writer.connection.close()
            self._writer = self._pruning = None
        self._lock.free()

    async def create(self, name: str, settings: Settings) -> QueueRow:
        async with self._open_writer().transaction() as connection:
            made = await connection.rows(sql.CREATE_QUEUE, {"name": name})
            if not made:
                raise QueueExists
            [(number,)] = made
            blob = encode_settings(number, settings)
            await connection.rows(sql.SET_SETTINGS, {"queue": number, "settings": blob})
        self._numbers.add(number)
        return QueueRow(number, name, settings, None)

    async def drop(self, queue: int) -> None:
        async with self._open_writer().transaction() as connection:
            await connection.rows(sql.DROP_QUEUE, {"queue": queue})
            self._open_writer().forget(queue)
        self._numbers.discard(queue)

    async def queues(self) -> list[QueueRow]:
        async with self._readers.lend() as connection:
            found = await connection.rows(sql.QUEUES)
        self._numbers = {number for number, *_ in found}
        return [
            QueueRow(number, name, decode_settings(number, settings), wake_at)
            for number, name, settings, wake_at in found
        ]

    async def unsettled(self) -> list[int]:
        async with self._readers.lend() as connection, connection.transaction("BEGIN"):
            return await tails.unsettled(connection)

    async def load(self, queue: int) -> Loaded:
        # Through the writer first: an append whose outcome nobody knew has ended when this has.
        if await self._open_writer().catch_up(queue) is None:
            raise QueueNotFound
        place = {"queue": queue}
        async with self._reading(queue) as connection:
            marked = await connection.rows(sql.SNAPSHOT, place)
            leases = await connection.rows(sql.LEASES, place)
            [(settings,)] = await connection.rows(sql.SETTINGS_OF, place)
        if marked:
            [(mark, blob)] = marked
            snapshot = decode_snapshot(queue, mark, blob)
        else:
            snapshot = Snapshot(decode_settings(queue, settings))
        return Loaded(snapshot, [decode_row(queue, row) for row in leases])

    async def tail(self, queue: int, after: int, limit: int) -> list[Event]:
        async with self._reading(queue) as connection:
            return await tails.tail(connection, queue, after, limit)

    async def fetch(self, queue: int, lookups: Sequence[Lookup]) -> list[Found]:
        self._ensure_known(queue)
        # No transaction around it: only its actor writes a queue's rows, and that waits here meanwhile.
        async with self._readers.lend() as connection:
            return await answers(connection, queue, lookups)

    async def append(self, batches: Sequence[Batch]) -> list[Ending]:
        return await self._open_writer().append(batches)

    def owns(self, queue: int) -> bool:  # noqa: ARG002 -- the lock on the file is held for life
        return True

    async def inbox(self, busy: Collection[int]) -> list[InboxRow]:  # noqa: ARG002 -- it has none
        return []

    async def checkpoint(self, queue: int, chunk: Chunk, wake_at: int | None) -> None:
        self._ensure_known(queue)
        writer = self._open_writer()
        async with writer.transaction() as connection:
            await write_chunk(connection, queue, chunk, wake_at)
            await writer.index_if_behind()

    async def journal(self, after: int, limit: int) -> list[JournalEntry]:
        async with self._readers.lend() as connection, connection.transaction("BEGIN"):
            return await tails.entries(connection, after, limit)

    async def journal_rows(self, after: int, upto: int, limit: int) -> list[JournalRow]:
        async with self._readers.lend() as connection, connection.transaction("BEGIN"):
            return await tails.rows(connection, after, upto, limit)

    async def journal_reach(self, after: int, events: int) -> int:
        async with self._readers.lend() as connection, connection.transaction("BEGIN"):
            return await tails.reach(connection, after, events)

    async def journal_count(self, after: int, upto: int) -> int:
        async with self._readers.lend() as connection, connection.transaction("BEGIN"):
            return await tails.count(connection, after, upto)

    async def prune(self, now: int, retention: Retention, limit: int) -> int:
        return await self._open_pruning().step(now, retention, limit)

    async def bounds(self) -> Bounds:
        async with self._readers.lend() as connection:
            [(first, last, archived)] = await connection.rows(sql.JOURNAL_BOUNDS)
        return Bounds(first or 0, last or 0, archived)

    async def archived(self, upto: int) -> int:
        async with self._open_writer().transaction() as connection:
            [(archived,)] = await connection.rows(sql.SET_ARCHIVED_TO, {"upto": upto})
        return int(archived)

    async def check(self) -> None:
        async with self._open_writer().transaction() as connection:
            # A commit that changes nothing writes nothing, and a full disk would not be seen. This is written
            # as often as it is said, and nobody reads it.
            await connection.rows("PRAGMA user_version = 0")

    async def facts(self) -> dict[str, str | int]:
        connection = self._open_writer().connection
        told = {name: (await connection.rows(f"PRAGMA {name}"))[0][0] for name in _TOLD}
        return {
            "backend": "sqlite",
            "durability": self.durability,
            "sqlite_version": sqlite3.sqlite_version,
            **told,
        }

    async def copy(self, to: Path) -> None:
        await anyio.to_thread.run_sync(copy_file, self._path, to)

    async def damage(self, most: int) -> list[str]:
        async with self._readers.lend() as connection:
            return await damage(connection, most)

    async def compact(self, limit: int) -> int:
        return await self._open_pruning().compact(limit)

    def _take(self) -> None:
        make_file(self._path)
        self._lock.take()

    def _open_writer(self) -> Writer:
        assert self._writer is not None, "open the backend before it is used"
        return self._writer

    def _open_pruning(self) -> Pruning:
        self._pruning = self._pruning or Pruning(self._readers, self._open_writer())
        return self._pruning

    def _ensure_known(self, queue: int) -> None:
        if queue not in self._numbers:
            raise QueueNotFound

    @asynccontextmanager
    async def _reading(self, queue: int) -> AsyncIterator[Connection]:
        """A connection that sees the file as of one moment."""
        self._ensure_known(queue)
        async with self._readers.lend() as connection, connection.transaction("BEGIN"):
            yield connection
