"""The journal of a Postgres database, read directly, beside the process that writes it.

A row may be committed after one with a higher position. What is read ends at the last position that is final
(hq/backends/postgres/positions.py), so none is passed over. A standby cannot tell which that is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

from hq.backends.port import JournalRow
from hq.backends.postgres import statements as sql
from hq.backends.postgres import tails
from hq.backends.postgres.connections import Connection, Limits, Place, connect, engine_for
from hq.backends.postgres.positions import final_position
from hq.backends.postgres.schema import REVISION, Schema
from hq.errors import DatabaseUnreachable, InvalidInput, StorageError, StorageTimeout
from pyspark_hq.direct import PAGE_ROWS, DirectStore
from pyspark_hq.errors import HqError, OptionInvalid, Refused, Unreachable
from pyspark_hq.options import Options
from pyspark_hq.requests import Wait
from pyspark_hq.stores import Bounds, Span

Answer = TypeVar("Answer")


def open_store(options: Options, patience_ms: int) -> DirectStore:
    """The store in the database of the job's url."""
    where = urlsplit(options.url)
    told = f"{where.scheme}://{where.netloc.rpartition('@')[2]}{where.path}, schema {options.schema}"
    try:
        schema = Schema(options.schema)
    except InvalidInput as error:
        raise OptionInvalid(f"option schema: {error}") from error
    limits = Limits(connect_s=min(max(1.0, patience_ms / 1_000), Limits().connect_s))
    place = Place(options.url, schema, limits, prepared=False)
    return DirectStore(options, told, partial(_opened, place, told, patience_ms))


class _Database:
    """One schema of a database: a connection, made anew when it is lost, because reading changes nothing."""

    def __init__(self, place: Place, told: str, patience_ms: int, runner: asyncio.Runner) -> None:
        self._place = place
        self._told = told
        self._patience_ms = patience_ms
        self._runner = runner
        self._engine = engine_for(place)
        self._connection: Connection | None = None

    def incarnation(self) -> int:
        [(incarnation,)] = self._asked(lambda connection: connection.rows(sql.INCARNATION))
        return int(incarnation)

    def queues(self) -> dict[int, str]:
        rows = self._asked(lambda connection: connection.rows(sql.QUEUES))
        return {number: name for number, name, *_ in rows}

    def bounds(self) -> Bounds:
        async def ask(connection: Connection) -> list[Any]:
            return await connection.rows(sql.JOURNAL_BOUNDS, {"up_to": await self._final(connection)})

        [(first, last, _)] = self._asked(ask)
        return Bounds(last or 0, first - 1, self.incarnation())

    def reach(self, after: int, events: int) -> int:
        async def ask(connection: Connection) -> int:
            return await tails.reach(connection, after, events, await self._final(connection))

        return self._asked(ask)

    def count(self, span: Span) -> int:
        [(events,)] = self._asked(lambda connection: connection.rows(sql.JOURNAL_COUNT, span._asdict()))
        return int(events)

    def page(self, span: Span) -> list[JournalRow]:
        # A span was cut from bounds, so the end of it is final.
        return self._asked(lambda connection: tails.rows(connection, span.after, span.upto, PAGE_ROWS))

    async def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            await self._connection.close()
        await self._engine.dispose()

    async def _final(self, connection: Connection) -> int:
        return await final_position(connection, self._place.limits.deadline_s)

    def _asked(self, question: Callable[[Connection], Awaitable[Answer]]) -> Answer:
        """The answer, from a new connection if need be, for as long as there is patience."""
        wait = Wait(self._patience_ms)
        while True:
            try:
                return self._runner.run(self._answered(question))
            except (DatabaseUnreachable, StorageTimeout) as error:
                if not wait.once():
                    raise Unreachable(f"{self._told} cannot be read: {error}") from error

    async def _answered(self, question: Callable[[Connection], Awaitable[Answer]]) -> Answer:
        if self._connection is not None and self._connection.is_lost:
            await self._connection.close()
            self._connection = None
        if self._connection is None:
            connection = await connect(self._engine, self._place)
            try:
                await self._check(connection)
            except BaseException:
                await connection.close()
                raise
            self._connection = connection
        return await question(self._connection)

    async def _check(self, connection: Connection) -> None:
        [greeting] = await connection.rows(sql.GREETING)
        if greeting["in_recovery"]:
            raise Refused(
                f"{self._told} is on a standby, which cannot tell what is still being written:"
                " name the primary"
            )
        place = {"schema": self._place.schema.name}
        [(_, has_revisions)] = await connection.rows(sql.SCHEMA_AND_REVISIONS, place)
        if not has_revisions:
            raise Refused(f"{self._told} is no database of hq")
        [(revision,)] = await connection.rows(sql.READ_REVISION)
        if revision != REVISION:
            raise HqError(
                f"{self._told} has revision {revision}, this hq reads {REVISION}: install the hq that"
                " wrote it"
            )


@contextmanager
def _opened(place: Place, told: str, patience_ms: int) -> Iterator[_Database]:
    with asyncio.Runner() as runner:
        database = _Database(place, told, patience_ms, runner)
        try:
            yield database
        except StorageError as error:
            raise HqError(f"{told} cannot be read: {error}") from error
        finally:
            runner.run(database.close())
