"""Reading the inbox of a Postgres database: what applications enqueued in their own transactions.

A page has the first rows of some queues; the next one goes on with other queues, so that none waits for the
backlog of another. Nobody moves a row here: an append takes it out (appends.py).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from typing import Any

import msgspec

from hq.backends.port import InboxRow
from hq.backends.postgres import statements as sql
from hq.backends.postgres.connections import Pool
from hq.backends.postgres.ownership import Ownership
from hq.domain.commands import TakeIn
from hq.domain.messages import MAX_ERROR_CHARS, TICKET, Options
from hq.domain.settings import RetryPolicy
from hq.errors import InvalidInput

QUEUES = 200
ROWS = 500
PAGE_BYTES = 4 << 20
_RETRY = {field.name for field in fields(RetryPolicy)}


class Inbox:
    """Where the last page ended, so that every queue has its turn."""

    def __init__(self, pool: Pool, ownership: Ownership) -> None:
        self._pool = pool
        self._ownership = ownership
        self._after = 0

    async def page(self, busy: Collection[int]) -> list[InboxRow]:
        """The first rows of some queues, but of the busy ones; none for a node that may have lapsed."""
        if not self._ownership.is_sure:
            return []
        values = {"after": self._after, "queues": QUEUES, "rows": ROWS, "busy": list(busy)}
        async with self._pool.lend() as connection:
            sizes = await connection.rows(sql.INBOX_SIZES, values)
            queues = {queue for queue, *_ in sizes}
            self._after = max(queues) if len(queues) == QUEUES else 0
            wanted = _within([size for size in sizes if size[1] is not None])
            if not wanted:
                return []
            takers, taken = zip(*wanted, strict=True)
            rows = await connection.rows(sql.INBOX_ROWS, {"takers": list(takers), "taken": list(taken)})
        return [InboxRow(row, queue, _command(*said)) for row, queue, *said in rows]


def _within(sizes: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """As many of these as a page has room for, one at least."""
    wanted: list[tuple[int, int]] = []
    held = 0
    for queue, row, size in sizes:
        held += size
        if wanted and held > PAGE_BYTES:
            break
        wanted.append((queue, row))
    return wanted


def _command(ticket: str, payload: bytes, said: str) -> TakeIn:
    """The command of a row. Whoever called the SQL function may have said anything."""
    ours = (TICKET, ticket)
    try:
        options = _options(msgspec.json.decode(said), ours)
    except (InvalidInput, msgspec.DecodeError, RecursionError) as error:
        return TakeIn(ticket, payload, Options(headers=(ours,)), str(error)[:MAX_ERROR_CHARS])
    return TakeIn(ticket, payload, options)


def _options(said: dict[str, Any], ours: tuple[str, str]) -> Options:
    given = {name: value for name, value in said.items() if value is not None}
    headers = msgspec.convert(given.get("headers", {}), dict[str, str])
    retry = msgspec.convert(given.get("retry", {}), dict[str, Any])
    for name in retry.keys() - _RETRY:
        raise InvalidInput(f"a retry policy has no {name!r}")
    given["headers"] = [*((name, value) for name, value in headers.items() if name != TICKET), ours]
    return msgspec.convert(given, Options)
