"""Enqueue by a connection of asyncpg, of a pool too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg

from hq.transactional.call import Call, refusal


def sender(connection: object) -> Callable[[Any, Call], Awaitable[str]] | None:
    """How a call is sent by it; None if it is no connection of asyncpg."""
    return _send if isinstance(connection, asyncpg.Connection) else None


async def _send(connection: asyncpg.Connection[asyncpg.Record], call: Call) -> str:
    statement = call.statement("$1", "$2", "$3")
    try:
        return str(await connection.fetchval(statement, call.queue, call.payload, call.options))
    except asyncpg.PostgresError as error:
        refused = refusal(error.sqlstate, error)
        if refused is None:
            raise
        raise refused from error
