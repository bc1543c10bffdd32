"""Postgres: the port over one schema of a database.

An append is one statement, so it costs one commit however many queues it carries; several run side by side,
each with queues of its own. Nothing is kept in a session.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

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
from hq.backends.postgres import statements as sql
from hq.backends.postgres import tails
from hq.backends.postgres.appends import Appends
from hq.backends.postgres.backups import copy_schema, fill_schema
from hq.backends.postgres.chunks import write_chunk
from hq.backends.postgres.connections import Connection, Limits, Place, Pool, engine_for
from hq.backends.postgres.inbox import Inbox
from hq.backends.postgres.opening import Shape, prepare
from hq.backends.postgres.ownership import Ownership, Term
from hq.backends.postgres.positions import final_position
from hq.backends.postgres.pruning import Pruning
from hq.backends.postgres.schema import Schema
from hq.backends.sqlite.backups import grouped
from hq.domain.checkpoint import Chunk, Snapshot
from hq.domain.events import Event
from hq.domain.lookups import Found, Lookup
from hq.domain.settings import Settings
from hq.errors import DatabaseInUse, InvalidInput, NotOwner, QueueExists, QueueNotFound

DEFAULT_LIMITS = Limits()
DEFAULT_SHAPE = Shape()
DEFAULT_TERM = Term()


class PostgresBackend:
    """All queues of one schema. `incarnation` is the store's, known once it is open."""

    has_inbox = True

    def __init__(
        self,
        dsn: str,
        *,
        shape: Shape = DEFAULT_SHAPE,
        term: Term = DEFAULT_TERM,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.durability = shape.durability
        self.lines = shape.lines
        self.incarnation = 0
        self.former: Mapping[int, Mapping[int, int]] = {}
        self._shape = shape
        self._limits = limits
        place = Place(dsn, Schema(shape.schema), limits, shape.prepared)
        self._engine = engine_for(place)
        self._pool = Pool(self._engine, place, shape.connections)
        # Of their own, so that neither appends nor heartbeats wait for a checkpoint.
        self._lines = Pool(self._engine, place, shape.lines)
        self._heart = Pool(self._engine, place, 1)
        self.ownership = Ownership(self._heart, term)
        self._appends = Appends(self._lines, self.ownership)
        self._inbox = Inbox(self._pool, self.ownership)
        self._pruning = Pruning(self._pool, self._appends, limits)
        self._numbers: set[int] = set()

    async def open(self) -> None:
        """Connect, make or migrate the schema, check what durability rests on, and enter as a node."""
        try:
            async with self._pool.lend() as connection:
                await prepare(connection, self._shape)
                await connection.rows(sql.CREATE_STORE, {"incarnation": secrets.randbits(32)})
                [(self.incarnation,)] = await connection.rows(sql.INCARNATION)
                self.former = grouped(await connection.rows(sql.FORMER))
            await self.ownership.enter()
            await self.queues()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.close()
            raise

    async def migrate(self) -> None:
        """Make or migrate the schema, and let go again."""
        try:
            async with self._pool.lend() as connection:
                await prepare(connection, self._shape)
        finally:
            await self.close()

    async def close(self) -> None:
        """Leave, so that another node may enter at once, and let go of everything."""
        if self.incarnation:
            await self.ownership.leave()
        for pool in (self._pool, self._lines, self._heart):
            await pool.close()
        await self._engine.dispose()

    async def create(self, name: str, settings: Settings) -> QueueRow:
        async with self._writing() as connection:
            made = await connection.rows(sql.CREATE_QUEUE, {"name": name, "node": self.ownership.node})
            if not made:
                raise QueueExists
            [(number,)] = made
            blob = encode_settings(number, settings)
            await connection.rows(sql.SET_SETTINGS, {"queue": number, "settings": blob})
        self._numbers.add(number)
        self.ownership.hold(number)
        return QueueRow(number, name, settings, None)

    async def drop(self, queue: int) -> None:
        async with self._writing() as connection:
            await connection.rows(sql.DROP_QUEUE, {"queue": queue})
        self._numbers.discard(queue)

    async def queues(self) -> list[QueueRow]:
        async with self._pool.lend() as connection:
            found = await connection.rows(sql.QUEUES)
        self._numbers = {number for number, *_ in found}
        return [
            QueueRow(number, name, decode_settings(number, settings), wake_at)
            for number, name, settings, wake_at in found
        ]

    async def unsettled(self) -> list[int]:
        async with self._pool.lend() as connection:
            return [number for (number,) in await connection.rows(sql.UNSETTLED)]

    async def load(self, queue: int) -> Loaded:
        place = {"queue": queue}
        node = self.ownership.node
        async with self._pool.lend() as connection:
            claimed = await connection.rows(sql.CLAIM_QUEUE, {**place, "node": node})
            if not claimed:
                raise NotOwner if await connection.rows(sql.IS_QUEUE, place) else QueueNotFound
            # Nobody but its owner writes a queue's rows, so it takes no transaction to read them.
            marked = await connection.rows(sql.SNAPSHOT, place)
            leases = await connection.rows(sql.LEASES, place)
        if node == self.ownership.node:
            self.ownership.hold(queue)
        if marked:
            [(mark, blob)] = marked
            snapshot = decode_snapshot(queue, mark, blob)
        else:
            [(settings,)] = claimed
            snapshot = Snapshot(decode_settings(queue, settings))
        return Loaded(snapshot, [decode_row(queue, row) for row in leases])

    async def tail(self, queue: int, after: int, limit: int) -> list[Event]:
        self._ensure_known(queue)
        async with self._pool.lend() as connection:
            return await tails.tail(connection, queue, after, limit)

    async def fetch(self, queue: int, lookups: Sequence[Lookup]) -> list[Found]:
        self._ensure_known(queue)
        # No transaction around it: only its actor writes a queue's rows, and that waits here meanwhile.
        async with self._pool.lend() as connection:
            return await answers(connection, queue, lookups)

    async def append(self, batches: Sequence[Batch]) -> list[Ending]:
        return await self._appends.append(batches)

    async def inbox(self, busy: Collection[int]) -> list[InboxRow]:
        return await self._inbox.page(busy)

    def owns(self, queue: int) -> bool:
        return self.ownership.owns(queue)

    async def checkpoint(self, queue: int, chunk: Chunk, wake_at: int | None) -> None:
        with anyio.CancelScope(shield=True):
            async with self._pool.lend() as connection, connection.transaction():
                owner = {"queue": queue, "node": self.ownership.node}
                found = await connection.rows(sql.OWN_QUEUE, owner)
                if not found:
                    raise QueueNotFound
                [(is_owner,)] = found
                if not is_owner:
                    raise NotOwner
                await write_chunk(connection, queue, chunk, wake_at)

    async def journal(self, after: int, limit: int) -> list[JournalEntry]:
        async with self._pool.lend() as connection:
            up_to = await final_position(connection, self._limits.deadline_s)
            return await tails.entries(connection, after, limit, up_to)

    async def journal_rows(self, after: int, upto: int, limit: int) -> list[JournalRow]:
        async with self._pool.lend() as connection:
            final = await final_position(connection, self._limits.deadline_s)
            return await tails.rows(connection, after, min(upto, final), limit)

    async def journal_reach(self, after: int, events: int) -> int:
        async with self._pool.lend() as connection:
            final = await final_position(connection, self._limits.deadline_s)
            return await tails.reach(connection, after, events, final)

    async def journal_count(self, after: int, upto: int) -> int:
        async with self._pool.lend() as connection:
            final = await final_position(connection, self._limits.deadline_s)
            return await tails.count(connection, after, min(upto, final))

    async def bounds(self) -> Bounds:
        async with self._pool.lend() as connection:
            up_to = await final_position(connection, self._limits.deadline_s)
            [(first, last, archived)] = await connection.rows(sql.JOURNAL_BOUNDS, {"up_to": up_to})
        return Bounds(first, last, archived) if last else Bounds(0, 0, archived)

    async def archived(self, upto: int) -> int:
        async with self._writing() as connection:
            [(archived,)] = await connection.rows(sql.SET_ARCHIVED_TO, {"upto": upto})
        return int(archived)

    async def check(self) -> None:
        async with self._writing():
            pass

    async def prune(self, now: int, retention: Retention, limit: int) -> int:
        return await self._pruning.step(now, retention, limit)

    async def facts(self) -> dict[str, str | int]:
        async with self._pool.lend() as connection:
            [found] = await connection.rows(sql.GREETING)
        told = {name: value for name, value in found.items() if name != "in_recovery"}
        return {"backend": "postgres", "durability": self.durability, "schema": self._shape.schema, **told}

    async def copy(self, to: Path) -> None:
        async with self._pool.lend() as connection, connection.moment():
            await copy_schema(connection, to)

    async def restore(self, backup: Path) -> None:
        """Fill an empty schema with a backup, and let go again."""
        try:
            async with self._pool.lend() as connection:
                await prepare(connection, self._shape)
                await fill_schema(connection, backup)
        finally:
            await self.close()

    async def damage(self, most: int) -> list[str]:
        async with self._pool.lend() as connection:
            return await damage(connection, most)

    async def compact(self, limit: int) -> int:  # noqa: ARG002 -- Postgres's own vacuum sees to its pages
        return 0

    def _ensure_known(self, queue: int) -> None:
        if queue not in self._numbers:
            raise QueueNotFound

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[Connection]:
        """A transaction of a node that has not lapsed, which cancellation does not tear."""
        with anyio.CancelScope(shield=True):
            async with self._pool.lend() as connection, connection.transaction():
                if not await connection.rows(sql.IS_LIVE, {"node": self.ownership.node}):
                    raise DatabaseInUse("this process has lapsed; another may serve this database now")
                yield connection


def backend_of(
    dsn: str,
    *,
    ownership_s: float = DEFAULT_TERM.time_s,
    deadline_s: float = DEFAULT_LIMITS.deadline_s,
    **shape: Any,  # noqa: ANN401 - Shape has their types
) -> PostgresBackend:
    """A backend by the names that a config file has for its options."""
    if not set(shape) <= set(Shape._fields):
        unknown = ", ".join(sorted(set(shape) - set(Shape._fields)))
        raise InvalidInput(f"there is no option of Postgres called {unknown}")
    if ownership_s <= DEFAULT_TERM.margin_s:
        raise InvalidInput(f"ownership_s must be more than {DEFAULT_TERM.margin_s:g}")
    term = DEFAULT_TERM._replace(time_s=ownership_s)
    return PostgresBackend(
        dsn, shape=Shape(**shape), term=term, limits=DEFAULT_LIMITS._replace(deadline_s=deadline_s)
    )
