"""Connections to one Postgres database, each lent to one task at a time and made anew when it was lost.

SQLAlchemy's engine opens and owns them; statements go straight to asyncpg. Nothing is kept in a session, so a
pooler may stand between. A call that is given up takes its connection with it: the statement may still run.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from types import MappingProxyType
from typing import Any, NamedTuple

import anyio
import asyncpg
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool
from tenacity import AsyncRetrying, retry_if_exception, stop_after_delay, wait_random_exponential

from hq.backends.postgres import statements
from hq.backends.postgres.schema import Schema
from hq.backends.postgres.trouble import Trouble, may_reconnect, named
from hq.domain.lookups import DedupKey
from hq.errors import StorageError

_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
_NOTHING: Mapping[str, object] = MappingProxyType({})
_CLOSE_S = 2.0
# A process that is stopped in the middle of a transaction holds its locks no longer than this.
_IDLE_S = 5


class Limits(NamedTuple):
    """How long a statement may take, and how long a connection is tried for."""

    deadline_s: float = 30.0
    connect_s: float = 10.0


class Place(NamedTuple):
    """Which database, and whether statements are prepared there by name."""

    dsn: str
    schema: Schema
    limits: Limits
    prepared: bool


class Connection:
    """One connection, in autocommit, with a deadline on every call."""

    sql = statements

    def __init__(
        self, alchemy: AsyncConnection, driver: asyncpg.Connection[asyncpg.Record], place: Place
    ) -> None:
        self.schema = place.schema
        self._alchemy = alchemy
        self._driver = driver
        self._place = place
        self._compiled: dict[str, tuple[str, list[str]]] = {}

    async def rows(self, sql: str, values: Mapping[str, object] = _NOTHING) -> list[Any]:
        """All rows of one statement."""
        with self._told():
            return await self.call(sql, values)

    async def call(self, sql: str, values: Mapping[str, object]) -> list[Any]:
        """All rows of one statement; what the driver raises is raised."""
        compiled = self._compiled.get(sql)
        if compiled is None:
            compiled = self._compiled[sql] = numbered(sql, self.schema)
        statement, names = compiled
        arguments = [values[name] for name in names]
        with self._bounded():
            return list(await self._driver.fetch(statement, *arguments))

    async def keys(self, queue: int, keys: list[DedupKey]) -> list[Any]:
        """The dedup keys that are held, of these."""
        values = {"queue": queue, **named_keys(keys)}
        found = await self.rows(statements.KEYS_OF, values)
        return [(scope.decode(), key.decode(), *entry) for scope, key, *entry in found]

    def array(self, numbers: list[int]) -> list[int]:
        """Numbers as they are."""
        return numbers

    def text(self, name: str) -> bytes:
        """A name in bytes: Postgres has no text with a NUL in it."""
        return name.encode()

    async def script(self, text: str) -> str:
        """Statements without values, all sent at once; what the last one says."""
        with self._told(), self._bounded():
            return str(await self._driver.execute(text))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Everything inside happens at once, or not at all."""
        await self.script(
            "BEGIN ISOLATION LEVEL READ COMMITTED;"
            f"SET LOCAL idle_in_transaction_session_timeout = '{_IDLE_S}s';"
            f"SET LOCAL statement_timeout = '{self._place.limits.deadline_s:g}s'"
        )
        try:
            yield
            await self._commit()
        except BaseException:
            with anyio.CancelScope(shield=True), suppress(StorageError):
                await self.script("ROLLBACK")
            raise

    @asynccontextmanager
    async def moment(self) -> AsyncIterator[None]:
        """Everything inside is read as of one moment, however long it takes."""
        await self.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        self._in_transaction = True
        try:
            yield
        finally:
            self._in_transaction = False
            with anyio.CancelScope(shield=True), suppress(StorageError):
                await self.script("ROLLBACK")

    async def fill(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Put many rows into a table at once."""
        with self._told(), self._bounded():
            await self._driver.copy_records_to_table(
                table, records=rows, columns=columns, schema_name=self.schema.name
            )

    async def _commit(self) -> None:
        if await self.script("COMMIT") != "COMMIT":
            raise StorageError("Postgres rolled a transaction back")

    @property
    def is_lost(self) -> bool:
        """Whether it can no longer be used."""
        return bool(self._driver.is_closed())

    async def close(self) -> None:
        """Close it; a server that does not answer is not waited for long."""
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(_CLOSE_S), suppress(*Trouble):
                await self._alchemy.close()
                return
            self._driver.terminate()

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        """A deadline; whatever cuts the call short ends the connection, because the statement may go on."""
        try:
            with anyio.fail_after(self._place.limits.deadline_s):
                yield
        except asyncpg.PostgresError:
            raise
        except BaseException:
            self._driver.terminate()
            raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except Trouble as error:
            raise named(error) from error


def numbered(sql: str, schema: Schema) -> tuple[str, list[str]]:
    """A statement as Postgres takes it, and the names of its values in their order."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[1] not in names:
            names.append(match[1])
        return f"${names.index(match[1]) + 1}"

    return schema.place(_PARAMETER.sub(number, sql)), names


def named_keys(keys: Sequence[DedupKey]) -> dict[str, object]:
    """Dedup keys as two arrays."""
    return {"scopes": [scope.encode() for scope, _ in keys], "keys": [key.encode() for _, key in keys]}


class Pool:
    """So many connections at most, made when they are first wanted."""

    def __init__(self, engine: AsyncEngine, place: Place, count: int) -> None:
        self._engine = engine
        self._place = place
        self._turns = anyio.Semaphore(count)
        self._idle: deque[Connection] = deque()
        self._closed = False

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Connection]:
        """A connection that nobody else uses meanwhile."""
        async with self._turns:
            connection = await self._ready()
            try:
                yield connection
            finally:
                if connection.is_lost or self._closed:
                    await connection.close()
                else:
                    self._idle.append(connection)

    async def close(self) -> None:
        """Close those that nobody uses now, and the others when they come back."""
        self._closed = True
        while self._idle:
            await self._idle.pop().close()

    async def _ready(self) -> Connection:
        """One that was not lost; the newest first, so that a quiet pool keeps few alive."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_lost:
                return connection
            await connection.close()
        return await connect(self._engine, self._place)


def engine_for(place: Place) -> AsyncEngine:
    """An engine that opens connections and keeps none."""

    async def open_connection() -> asyncpg.Connection[asyncpg.Record]:
        return await asyncpg.connect(
            place.dsn,
            timeout=place.limits.connect_s,
            statement_cache_size=256 if place.prepared else 0,
            max_cached_statement_lifetime=0,
            server_settings={"application_name": "hq"},
        )

    engine = create_async_engine("postgresql+asyncpg://", async_creator=open_connection, poolclass=NullPool)
    # SQLAlchemy would ask each new connection about two types that hq does not use, outside a transaction.
    for name in ("setup_asyncpg_json_codec", "setup_asyncpg_jsonb_codec"):
        setattr(engine.dialect, name, _nothing)
    return engine


async def _nothing(_: object) -> None:
    pass


async def connect(engine: AsyncEngine, place: Place) -> Connection:
    """A new connection, tried for again and again while the server starts or has no room."""
    attempts = AsyncRetrying(
        wait=wait_random_exponential(multiplier=0.02, max=0.5),
        stop=stop_after_delay(place.limits.connect_s),
        retry=retry_if_exception(may_reconnect),
        sleep=anyio.sleep,
        reraise=True,
    )
    try:
        async for attempt in attempts:
            with attempt:
                alchemy = await engine.connect()
    except Trouble as error:
        raise named(error) from error
    alchemy = await alchemy.execution_options(isolation_level="AUTOCOMMIT")
    driver = (await alchemy.get_raw_connection()).driver_connection
    assert isinstance(driver, asyncpg.Connection)
    return Connection(alchemy, driver, place)
