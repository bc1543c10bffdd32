"""Enqueue inside an application's own Postgres transaction: the message comes if that commits, and only then.

A library of Postgres that the application has not imported is not imported here.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Unpack, overload

from hq.errors import InvalidInput
from hq.system.keywords import EnqueueKeywords
from hq.system.payloads import Payload
from hq.transactional.call import Call

if TYPE_CHECKING:
    import asyncpg
    import psycopg
    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
    from sqlalchemy.orm import Session, scoped_session

__all__ = ["enqueue"]

_LIBRARIES = ("asyncpg", "psycopg", "sqlalchemy")


@overload
def enqueue(
    connection: Connection | Session | scoped_session[Any] | psycopg.Connection[Any],
    queue: str,
    payload: Payload,
    *,
    schema: str = "hq",
    **options: Unpack[EnqueueKeywords],
) -> str: ...
@overload
def enqueue(
    connection: AsyncConnection | AsyncSession | async_scoped_session[Any] | psycopg.AsyncConnection[Any],
    queue: str,
    payload: Payload,
    *,
    schema: str = "hq",
    **options: Unpack[EnqueueKeywords],
) -> Awaitable[str]: ...
@overload
def enqueue(
    connection: asyncpg.Connection[Any],
    queue: str,
    payload: Payload,
    *,
    schema: str = "hq",
    **options: Unpack[EnqueueKeywords],
) -> Awaitable[str]: ...
def enqueue(
    connection: Any,
    queue: str,
    payload: Payload,
    *,
    schema: str = "hq",
    **options: Unpack[EnqueueKeywords],
) -> str | Awaitable[str]:
    """Put a message in when the transaction commits, and return its ticket; awaited where the connection is.

    The ticket is the message's header `hq-ticket`. `schema` is hq's. What is wrong with the message itself is
    told before anything is sent; QueueNotFound, as any error of a statement, ends the transaction.
    """
    call = Call.of(schema, queue, payload, options)
    for library in _LIBRARIES:
        if library in sys.modules:
            send = import_module(f"hq.transactional.by_{library}").sender(connection)
            if send is not None:
                told: str | Awaitable[str] = send(connection, call)
                return told
    raise InvalidInput(
        "a message is enqueued by a connection or session of SQLAlchemy, or by a connection of asyncpg or"
        f" psycopg, not by a {type(connection).__name__}"
    )
