"""Enqueue by a connection of psycopg 3, blocking or not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from hq.transactional.call import Call, refusal


def sender(connection: object) -> Callable[[Any, Call], str | Awaitable[str]] | None:
    """How a call is sent by it; None if it is no connection of psycopg."""
    if isinstance(connection, psycopg.AsyncConnection):
        return _send_async
    return _send if isinstance(connection, psycopg.Connection) else None


def _send(connection: psycopg.Connection[Any], call: Call) -> str:
    with _told(), connection.cursor(row_factory=tuple_row) as cursor:
        cursor.execute(*_query(call))
        [[ticket]] = cursor.fetchall()
        return str(ticket)


async def _send_async(connection: psycopg.AsyncConnection[Any], call: Call) -> str:
    with _told():
        async with connection.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(*_query(call))
            [[ticket]] = await cursor.fetchall()
            return str(ticket)


def _query(call: Call) -> tuple[bytes, tuple[object, ...]]:
    schema = call._replace(schema=call.schema.replace("%", "%%"))
    return schema.statement("%s", "%s", "%s").encode(), (call.queue, call.payload, call.options)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        refused = refusal(error.sqlstate, error)
        if refused is None:
            raise
        raise refused from error
