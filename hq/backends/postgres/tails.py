"""Reading the journal of a Postgres database: a queue's tail, and all entries in order.

Sizes are read before bodies, so that a page of large rows costs no more memory than its bound.
"""

from __future__ import annotations

from typing import Any

from hq.backends.pages import ROWS_BYTES, EventsMissing, decoded, followed, within
from hq.backends.port import JournalEntry, JournalRow
from hq.backends.postgres import statements as sql
from hq.backends.postgres.connections import Connection
from hq.domain.events import Event
from hq.errors import JournalPruned


async def tail(connection: Connection, queue: int, after: int, limit: int) -> list[Event]:
    """Events of a queue after a sequence, whole batches of them."""
    sizes = await connection.rows(sql.TAIL, {"queue": queue, "after": after, "limit": limit})
    sizes = [size for size in sizes if size[2] > after]
    try:
        return followed(queue, after, await _bodies(connection, within(sizes, limit)))
    except EventsMissing as missing:
        marks = await connection.rows(sql.MARK_OF, {"queue": queue})
        raise missing.told(marks[0][0] if marks else 0) from missing


async def entries(connection: Connection, after: int, limit: int, up_to: int) -> list[JournalEntry]:
    """Entries of all queues after a position, up to one that is final."""
    sizes = await connection.rows(sql.JOURNAL_SIZES, {"after": after, "up_to": up_to, "limit": limit})
    rows = await _bodies(connection, within(sizes, None))
    [(pruned_to,)] = await connection.rows(sql.PRUNED_TO)
    if 0 < after < pruned_to:
        raise JournalPruned(pruned_to + 1)
    return decoded(rows)


async def rows(connection: Connection, after: int, upto: int, limit: int) -> list[JournalRow]:
    """Rows of all queues in a range of positions, as they are stored; the last of them is final."""
    sizes = await connection.rows(sql.JOURNAL_SIZES, {"after": after, "up_to": upto, "limit": limit})
    found = await _bodies(connection, within(sizes, None, ROWS_BYTES))
    [(pruned_to,)] = await connection.rows(sql.PRUNED_TO)
    if after < pruned_to:
        raise JournalPruned(pruned_to + 1)
    return [JournalRow(*row) for row in found]


async def reach(connection: Connection, after: int, events: int, up_to: int) -> int:
    """The last position up to which no more than so many events come after another, or one row does."""
    values = {"after": after, "up_to": up_to, "events": events}
    for too_many, first in await connection.rows(sql.JOURNAL_REACH, values):
        return max(int(too_many) - 1, int(first))
    return max(after, up_to)


async def count(connection: Connection, after: int, upto: int) -> int:
    """How many events are in a range of positions."""
    [(events,)] = await connection.rows(sql.JOURNAL_COUNT, {"after": after, "upto": upto})
    [(pruned_to,)] = await connection.rows(sql.PRUNED_TO)
    if after < pruned_to:
        raise JournalPruned(pruned_to + 1)
    return int(events)


async def _bodies(connection: Connection, positions: list[int]) -> list[Any]:
    if not positions:
        return []
    return await connection.rows(sql.JOURNAL_ROWS, {"positions": positions})
