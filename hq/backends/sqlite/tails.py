"""Reading the journal of one SQLite file: a queue's tail, and all entries in order.

Sizes are read before bodies, so that a page of large rows costs no more memory than its bound.
"""

from __future__ import annotations

import json
from typing import Any

from hq.backends.pages import ROWS_BYTES, EventsMissing, decoded, followed, within
from hq.backends.port import JournalEntry, JournalRow
from hq.backends.sqlite import statements as sql
from hq.backends.sqlite.connections import Connection
from hq.domain.events import Event
from hq.errors import JournalPruned


async def tail(connection: Connection, queue: int, after: int, limit: int) -> list[Event]:
    """Events of a queue after a sequence, whole batches of them."""
    values = {"queue": queue, "after": after, "limit": limit}
    sizes = await connection.rows(sql.TAIL_INDEXED, values)
    sizes = [size for size in sizes if size[2] > after]
    if len(sizes) < limit:
        sizes += await connection.rows(sql.TAIL_WALKED, values)
    try:
        return followed(queue, after, await _bodies(connection, within(sizes, limit)))
    except EventsMissing as missing:
        [(mark, _)] = await connection.rows(sql.KNOWN_OF_QUEUE, {"queue": queue})
        raise missing.told(mark) from missing


async def entries(connection: Connection, after: int, limit: int) -> list[JournalEntry]:
    """Entries of all queues after a position."""
    [(lowest,)] = await connection.rows(sql.LOWEST_POSITION)
    if lowest is not None and 0 < after < lowest - 1:
        raise JournalPruned(lowest)
    sizes = await connection.rows(sql.JOURNAL_SIZES, {"after": after, "limit": limit})
    return decoded(await _bodies(connection, within(sizes, None)))


async def rows(connection: Connection, after: int, upto: int, limit: int) -> list[JournalRow]:
    """Rows of all queues in a range of positions, as they are stored."""
    [(lowest,)] = await connection.rows(sql.LOWEST_POSITION)
    if lowest is not None and after < lowest - 1:
        raise JournalPruned(lowest)
    values = {"after": after, "upto": upto, "limit": limit}
    sizes = await connection.rows(sql.JOURNAL_SIZES_UP_TO, values)
    return [JournalRow(*row) for row in await _bodies(connection, within(sizes, None, ROWS_BYTES))]


async def reach(connection: Connection, after: int, events: int) -> int:
    """The last position up to which no more than so many events come after another, or one row does."""
    [(highest,)] = await connection.rows(sql.HIGHEST_POSITION)
    reached: int = max(after, highest or 0)
    for too_many, first in await connection.rows(sql.JOURNAL_REACH, {"after": after, "events": events}):
        reached = max(too_many - 1, first)
    return reached


async def count(connection: Connection, after: int, upto: int) -> int:
    """How many events are in a range of positions."""
    [(lowest,)] = await connection.rows(sql.LOWEST_POSITION)
    if lowest is not None and after < lowest - 1:
        raise JournalPruned(lowest)
    [(events,)] = await connection.rows(sql.JOURNAL_COUNT, {"after": after, "upto": upto})
    return int(events)


async def _bodies(connection: Connection, positions: list[int]) -> list[Any]:
    if not positions:
        return []
    return await connection.rows(sql.JOURNAL_ROWS, {"positions": json.dumps(positions)})


async def unsettled(connection: Connection) -> list[int]:
    """The queues whose journal goes on after their mark."""
    marks = dict(await connection.rows(sql.MARKS))
    lasts = dict(await connection.rows(sql.LASTS_INDEXED)) | dict(await connection.rows(sql.LASTS_WALKED))
    return [queue for queue, mark in marks.items() if lasts.get(queue, 0) > mark]
