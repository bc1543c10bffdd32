"""Applications that enqueue in transactions of their own, one for each kind of connection there is."""

from contextlib import asynccontextmanager, contextmanager
from functools import partial

import anyio.to_thread
import asyncpg
import psycopg
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from hq.transactional import enqueue


class RolledBackError(Exception):
    """The application thinks better of it."""


async def asyncpg_connection(url, *calls, commit=True):
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            return await put(connection, calls, commit)
    finally:
        await connection.close()


async def asyncpg_pool(url, *calls, commit=True):
    async with (
        asyncpg.create_pool(url, min_size=1, max_size=1) as pool,
        pool.acquire() as connection,
        connection.transaction(),
    ):
        return await put(connection, calls, commit)


async def psycopg_async(url, *calls, commit=True):
    async with await psycopg.AsyncConnection.connect(url) as connection:
        return await put(connection, calls, commit)


async def sqlalchemy_async_connection(url, *calls, commit=True):
    async with _async_engine(url) as engine, engine.begin() as connection:
        return await put(connection, calls, commit)


async def sqlalchemy_async_session(url, *calls, commit=True):
    async with _async_engine(url) as engine, AsyncSession(engine) as session, session.begin():
        return await put(session, calls, commit)


async def psycopg_blocking(url, *calls, commit=True):
    def work():
        with psycopg.connect(url) as connection:
            return put_blocking(connection, calls, commit)

    return await anyio.to_thread.run_sync(work)


async def sqlalchemy_connection(url, *calls, commit=True):
    def work():
        with _engine(url) as engine, engine.begin() as connection:
            return put_blocking(connection, calls, commit)

    return await anyio.to_thread.run_sync(work)


async def sqlalchemy_session(url, *calls, commit=True):
    def work():
        with _engine(url) as engine, Session(engine) as session, session.begin():
            return put_blocking(session, calls, commit)

    return await anyio.to_thread.run_sync(work)


APPLICATIONS = {
    application.__name__: application
    for application in (
        asyncpg_connection,
        asyncpg_pool,
        psycopg_async,
        psycopg_blocking,
        sqlalchemy_async_connection,
        sqlalchemy_async_session,
        sqlalchemy_connection,
        sqlalchemy_session,
    )
}


def message(queue, payload, **options):
    """What one call of enqueue is given."""
    return partial(enqueue, queue=queue, payload=payload, **options)


async def put(connection, calls, commit):
    tickets = [await call(connection) for call in calls]
    if not commit:
        raise RolledBackError
    return tickets


def put_blocking(connection, calls, commit):
    tickets = [call(connection) for call in calls]
    if not commit:
        raise RolledBackError
    return tickets


@asynccontextmanager
async def _async_engine(url):
    engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"))
    try:
        yield engine
    finally:
        await engine.dispose()


@contextmanager
def _engine(url):
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        yield engine
    finally:
        engine.dispose()
