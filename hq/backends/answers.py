"""Answers to lookups (hq/domain/lookups.py) from rows in SQL; each backend has statements of these names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import merge
from operator import attrgetter
from typing import Any, Protocol

from hq.backends.codec import checked_payload, decode_row
from hq.domain import lookups as look
from hq.domain.listing import STATES
from hq.domain.lookups import END, Ahead, DedupKey, Entry, Found, FoundBounds, FoundRows, Key, Lookup, Rest
from hq.domain.messages import Message

_COLUMNS = 9


class Statements(Protocol):
    """The ranges of an SQL backend. A row's columns come in the order that codec.decode_row takes them."""

    ROWS_OF: str
    PAYLOADS_OF: str
    DELAYED_AFTER: str
    IN_INBOX: str
    SHELF_BOUNDS: str
    SHELF_PAGE: str
    SHELF_NEXT: str
    LANE_PAGE: str
    ENDS_PAGE: str
    ENDS_NEXT: str
    STATE_PAGE: str


class Source(Protocol):
    """A connection to read rows from."""

    @property
    def sql(self) -> Statements:
        """Its statements."""

    async def rows(self, sql: str, values: Mapping[str, object]) -> list[Any]:
        """All rows of one statement."""

    async def keys(self, queue: int, keys: list[DedupKey]) -> list[Any]:
        """Of each dedup key that is held: scope, key, and what an Entry has."""

    def array(self, numbers: list[int]) -> object:
        """Numbers as one bound value."""

    def text(self, name: str) -> object:
        """A name that a client chose, as a bound value."""


async def answers(connection: Source, queue: int, lookups: Sequence[Lookup]) -> list[Found]:
    """One answer for each lookup. Rows and keys are read together, however many are asked for."""
    rows = await _rows_of(connection, queue, [one.message for one in lookups if isinstance(one, look.RowOf)])
    payloads = await _payloads_of(
        connection, queue, [one.message for one in lookups if isinstance(one, look.PayloadOf)]
    )
    keys = await _keys_of(connection, queue, [one.key for one in lookups if isinstance(one, look.KeyOf)])
    found: list[Found] = []
    for lookup in lookups:
        match lookup:
            case look.RowOf(sequence):
                found.append(rows[sequence].row() if sequence in rows else None)
            case look.PayloadOf(sequence):
                found.append(payloads.get(sequence))
            case look.KeyOf(key):
                found.append(keys.get(key))
            case look.DelayedAfter(instant, since):
                values = {"queue": queue, "instant": instant, "since": since}
                found.append((await connection.rows(connection.sql.DELAYED_AFTER, values))[0][0])
            case look.InInbox():
                found.append((await connection.rows(connection.sql.IN_INBOX, {"queue": queue}))[0][0])
            case look.Bounds():
                found.append(await _bounds(connection, queue))
            case look.ShelfPage(rank, start, until, limit):
                found.append(await _shelf_page(connection, queue, rank, (start, until, limit)))
            case look.LanePage():
                found.append(await _lane_page(connection, queue, lookup))
            case look.EndsPage(start, until, limit):
                found.append(await _ends_page(connection, queue, (start, until, limit)))
            case look.SequencePage():
                found.append(await _sequence_page(connection, queue, lookup))
    return found


async def _rows_of(connection: Source, queue: int, sequences: list[int]) -> dict[int, Message]:
    if not sequences:
        return {}
    found = await connection.rows(
        connection.sql.ROWS_OF, {"queue": queue, "sequences": connection.array(sequences)}
    )
    return {row.sequence: row for row in _decoded(queue, found)}


async def _payloads_of(connection: Source, queue: int, sequences: list[int]) -> dict[int, bytes]:
    if not sequences:
        return {}
    found = await connection.rows(
        connection.sql.PAYLOADS_OF, {"queue": queue, "sequences": connection.array(sequences)}
    )
    return {sequence: checked_payload(queue, sequence, payload, check) for sequence, payload, check in found}


async def _keys_of(connection: Source, queue: int, keys: list[DedupKey]) -> dict[DedupKey, Entry]:
    if not keys:
        return {}
    return {
        (scope, key): Entry(message, until, bool(live), expires_at, as_of)
        for scope, key, message, until, live, expires_at, as_of in await connection.keys(queue, keys)
    }


async def _bounds(connection: Source, queue: int) -> FoundBounds:
    shelves = await connection.rows(connection.sql.SHELF_BOUNDS, {"queue": queue})
    ends = await _next_key(connection, connection.sql.ENDS_NEXT, {"queue": queue}, look.START)
    return FoundBounds({rank: (instant, sequence) for rank, instant, sequence in shelves}, ends)


async def _shelf_page(connection: Source, queue: int, rank: int, bounds: tuple[Key, int, int]) -> FoundRows:
    place = {"queue": queue, "rank": rank}
    found = await connection.rows(connection.sql.SHELF_PAGE, {**place, **_range(bounds)})
    rows = _decoded(queue, found)
    lanes: list[Rest] = [END if one[_COLUMNS] is None else Ahead(*one[_COLUMNS:]) for one in found]
    reached = (rows[-1].available_at, rows[-1].sequence + 1) if rows else bounds[0]
    return FoundRows(rows, await _next_key(connection, connection.sql.SHELF_NEXT, place, reached), lanes)


async def _ends_page(connection: Source, queue: int, bounds: tuple[Key, int, int]) -> FoundRows:
    place = {"queue": queue}
    rows = _decoded(queue, await connection.rows(connection.sql.ENDS_PAGE, {**place, **_range(bounds)}))
    reached = (rows[-1].ends_at or 0, rows[-1].sequence + 1) if rows else bounds[0]
    return FoundRows(
        rows, await _next_key(connection, connection.sql.ENDS_NEXT, place, reached), [END] * len(rows)
    )


def _range(bounds: tuple[Key, int, int]) -> dict[str, int]:
    (instant, sequence), until, limit = bounds
    return {"instant": instant, "sequence": sequence, "until": until, "limit": limit}


async def _next_key(connection: Source, statement: str, place: dict[str, int], start: Key) -> Key:
    instant, sequence = start
    found = await connection.rows(statement, {**place, "instant": instant, "sequence": sequence})
    return tuple(found[0]) if found else END


async def _lane_page(connection: Source, queue: int, lookup: look.LanePage) -> FoundRows:
    kind, name, rank = lookup.lane
    values = {
        "queue": queue,
        "kind": kind,
        "name": connection.text(name),
        "lane_rank": rank,
        "limit": lookup.limit + 1,
    }
    instant, sequence = lookup.start[:2]
    found = await connection.rows(
        connection.sql.LANE_PAGE, {**values, "instant": instant, "sequence": sequence}
    )
    rows = _decoded(queue, found)
    rest: Rest = END
    if len(rows) > lookup.limit:
        last = rows.pop()
        rest = Ahead(last.place or 0, last.sequence, last.rank, last.available_at)
    return FoundRows(rows, rest, [END] * len(rows))


async def _sequence_page(connection: Source, queue: int, lookup: look.SequencePage) -> FoundRows:
    """Each state by its own range, merged: a long list of another state is not walked."""
    pages: list[list[Message]] = []
    for state in STATES[lookup.scope]:
        values = {"queue": queue, "state": state.value, "after": lookup.after, "limit": lookup.limit + 1}
        pages.append(_decoded(queue, await connection.rows(connection.sql.STATE_PAGE, values)))
    rows = list(merge(*pages, key=attrgetter("sequence")))
    rest = (0, rows[lookup.limit].sequence) if len(rows) > lookup.limit else END
    return FoundRows(rows[: lookup.limit], rest, [])


def _decoded(queue: int, found: list[Any]) -> list[Message]:
    return [decode_row(queue, columns[:_COLUMNS]) for columns in found]
