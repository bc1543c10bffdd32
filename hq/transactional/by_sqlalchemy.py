"""Enqueue by a connection or session of SQLAlchemy, blocking or not, whatever its driver."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy import Connection, LargeBinary, TextClause, bindparam, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session

from hq.transactional.call import Call, refusal


def sender(connection: object) -> Callable[[Any, Call], str | Awaitable[str]] | None:
    """How a call is sent by it; None if it is neither connection nor session."""
    if isinstance(connection, AsyncConnection):
        return _send_async
    if isinstance(connection, AsyncSession | async_scoped_session):
        return _send_in_async_session
    if isinstance(connection, Connection):
        return _send
    return _send_in_session if isinstance(connection, Session | scoped_session) else None


def _send(connection: Connection, call: Call) -> str:
    values = {"queue": call.queue, "payload": call.payload, "options": call.options}
    try:
        return str(connection.execute(_statement(call), values).scalar_one())
    except DBAPIError as error:
        refused = None if error.orig is None else refusal(_state(error.orig), _said(error.orig))
        if refused is None:
            raise
        raise refused from error


def _send_in_session(session: Session | scoped_session[Any], call: Call) -> str:
    return _send(session.connection(), call)


async def _send_async(connection: AsyncConnection, call: Call) -> str:
    return await connection.run_sync(_send, call)


async def _send_in_async_session(session: AsyncSession | async_scoped_session[Any], call: Call) -> str:
    return await _send_async(await session.connection(), call)


def _statement(call: Call) -> TextClause:
    schema = call._replace(schema=call.schema.replace(":", r"\:"))
    payload = bindparam("payload", type_=LargeBinary)
    return text(schema.statement(":queue", ":payload", ":options")).bindparams(payload)


def _state(error: BaseException) -> str | None:
    """The SQLSTATE, by the names that drivers have for it."""
    return getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)


def _said(error: BaseException) -> Exception:
    """The driver's own error, where SQLAlchemy has wrapped it to look like another."""
    cause = error.__cause__
    return cause if isinstance(cause, Exception) else Exception(str(error))
