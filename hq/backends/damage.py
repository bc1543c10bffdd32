"""Reading all that is stored, a page at a time, to see what of it cannot be read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, Protocol

from hq.backends.codec import checked_payload, decode_events, decode_row, decode_snapshot
from hq.errors import StorageError

PAGE = 50
"""Rows of a page: each is read with its payload, however large it is."""


class Reading(Protocol):
    """A connection to either database, and its statements."""

    @property
    def sql(self) -> Any: ...  # noqa: ANN401 - a module

    async def rows(self, sql: str, values: Mapping[str, object] = ...) -> list[Any]: ...


async def damage(connection: Reading, most: int) -> list[str]:
    """A sentence for each row that cannot be read, for so many of them."""
    found: list[str] = []
    async for told in _all(connection):
        found += told
        if len(found) >= most:
            break
    return found[:most]


async def _all(connection: Reading) -> AsyncIterator[list[str]]:
    sql = connection.sql
    yield _read("snapshot", await connection.rows(sql.EVERY_SNAPSHOT), decode_snapshot)
    last: tuple[int, ...] = (0, 0)
    while rows := await connection.rows(
        sql.EVERY_ROW, {"queue": last[0], "sequence": last[1], "limit": PAGE}
    ):
        last = (rows[-1][0], rows[-1][1])
        yield _read("message", rows, _row)
    position = 0
    while rows := await connection.rows(sql.EVERY_BATCH, {"after": position, "limit": PAGE}):
        position = rows[-1][0]
        yield _read("journal row", rows, _batch)


def _read(what: str, rows: Iterable[Any], decode: Callable[..., object]) -> list[str]:
    told = []
    for row in rows:
        try:
            decode(*row)
        except StorageError as error:
            told.append(f"a {what} is damaged: {error}")
    return told


def _row(queue: int, *columns: Any) -> None:  # noqa: ANN401 - as the database gives them
    *row, payload = columns
    decode_row(queue, row)
    checked_payload(queue, row[0], payload, row[7])


def _batch(position: int, *row: Any) -> None:  # noqa: ANN401, ARG001 - as above; a batch does not know its place
    decode_events(*row)
