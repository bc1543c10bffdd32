"""Connections to one SQLite file: a single one that writes, a few that read.

SQLAlchemy's engines open and own them; statements go straight to aiosqlite, because each of its calls is one
hop to the connection's thread and SQLAlchemy's cursor would take four. A call that is given up still runs on
in that thread, and whatever is handed over later runs after it.
"""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiosqlite
import anyio
from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from hq.backends.sqlite import statements
from hq.backends.sqlite.trouble import named
from hq.domain.lookups import DedupKey
from hq.errors import StorageError, StorageTimeout

Values = Mapping[str, object] | Sequence[object]
_KEYS_AT_ONCE = 500


class Connection:
    """One connection, in autocommit, with a deadline on every call."""

    sql = statements

    def __init__(self, alchemy: AsyncConnection, driver: aiosqlite.Connection, deadline_s: float) -> None:
        self.alchemy = alchemy
        self.driver = driver
        self._deadline_s = deadline_s

    async def rows(self, sql: str, values: Values = ()) -> list[Any]:
        """All rows of one statement."""
        with self._bounded(), anyio.fail_after(self._deadline_s):
            return list(await self.driver.execute_fetchall(sql, values))

    async def many(self, sql: str, rows: Sequence[Values]) -> int:
        """One statement for each row of values; how many rows it changed in all."""
        if not rows:
            return 0
        with self._bounded(), anyio.fail_after(self._deadline_s):
            cursor = await self.driver.executemany(sql, rows)
            return cursor.rowcount

    async def keys(self, queue: int, keys: list[DedupKey]) -> list[Any]:
        """The dedup keys that are held, of these."""
        found: list[Any] = []
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            part = keys[start : start + _KEYS_AT_ONCE]
            values = [text for key in part for text in key]
            found += await self.rows(statements.keys_of(len(part)), [*values, queue])
        return found

    def array(self, numbers: list[int]) -> str:
        """Numbers as json_each takes them."""
        return json.dumps(numbers)

    def text(self, name: str) -> str:
        """A name as it is."""
        return name

    async def script(self, text: str) -> None:
        """Statements without values or rows, each stepped to its end."""
        with self._bounded(), anyio.fail_after(self._deadline_s):
            await self.driver.executescript(text)

    @asynccontextmanager
    async def transaction(self, begin: str = "BEGIN IMMEDIATE") -> AsyncIterator[None]:
        """Everything inside happens at once, or not at all."""
        try:
            await self.rows(begin)
            yield
            await self.rows("COMMIT")
        except BaseException:
            # There may be nothing to roll back: SQLite does it by itself when the disk is full.
            with anyio.CancelScope(shield=True), suppress(StorageError):
                await self.rows("ROLLBACK")
            raise

    async def close(self) -> None:
        """Close it, behind whatever it still has to do."""
        with anyio.CancelScope(shield=True):
            await self.alchemy.close()
            await self.alchemy.engine.dispose()

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise named(error) from error
        except TimeoutError as error:
            raise StorageTimeout(f"storage did not answer within {self._deadline_s:g} s") from error


class Readers:
    """A few read-only connections, lent one at a time."""

    def __init__(self, path: Path, count: int, deadline_s: float) -> None:
        self._path = path
        self._deadline_s = deadline_s
        self._turns = anyio.Semaphore(count)
        self._idle: deque[Connection] = deque()
        self._count = count

    async def open(self) -> None:
        """Open all of them, so that a file that cannot be read is told at once."""
        for _ in range(self._count):
            self._idle.append(await connect(self._path, "ro", self._deadline_s))

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Connection]:
        """A connection that nobody else uses meanwhile."""
        async with self._turns:
            connection = self._idle.popleft()
            try:
                yield connection
            finally:
                self._idle.append(connection)

    async def close(self) -> None:
        """Close them all."""
        while self._idle:
            await self._idle.popleft().close()


async def connect(path: Path, mode: str, deadline_s: float) -> Connection:
    """A connection to a file that exists; `mode` is SQLite's: `ro` or `rw`."""
    url = URL.create(
        "sqlite+aiosqlite", database=f"file:{quote(str(path))}", query={"mode": mode, "uri": "true"}
    )
    engine = create_async_engine(
        url, poolclass=NullPool, connect_args={"isolation_level": None, "cached_statements": 256}
    )
    try:
        alchemy = await engine.connect()
    except DBAPIError as error:
        await engine.dispose()
        if isinstance(error.orig, sqlite3.Error):
            raise named(error.orig) from error
        raise
    alchemy = await alchemy.execution_options(isolation_level="AUTOCOMMIT")
    driver = (await alchemy.get_raw_connection()).driver_connection
    assert isinstance(driver, aiosqlite.Connection)
    return Connection(alchemy, driver, deadline_s)
