"""The journal of a SQLite file, read directly and read-only, beside the process that writes it.

Every page is a transaction of its own, so that no reader keeps the writer's log from being reset. hq itself
must be installed where this runs: the file holds what only hq can decode.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa

from hq.backends.port import JournalRow
from hq.backends.sqlite import statements as sql
from hq.backends.sqlite.schema import REVISION
from hq.errors import HQError
from hq.tables.events import SCHEMA, events_batch
from pyspark_hq.errors import DataLost, HqError, OptionInvalid, Refused
from pyspark_hq.options import Options
from pyspark_hq.stores import Bounds, Span

PAGE_ROWS = 10_000
PAGE_BYTES = 8 << 20
BUSY_S = 5.0


def open_store(options: Options, _patience_ms: int) -> SqliteStore:
    """The store in the file of the job's url."""
    return SqliteStore(options)


class SqliteStore:
    """One file, opened anew for every question."""

    def __init__(self, options: Options) -> None:
        where = urlsplit(options.url)
        if where.netloc or not where.path.startswith("/") or where.path == "/":
            raise OptionInvalid("a database is named sqlite:///path, or sqlite:////path from the root")
        self._path = Path(unquote(where.path[1:])).absolute()
        self._queue = options.queue
        if options.table != "events":
            raise self._over_http(f"table {options.table!r}")
        if not self._path.is_file():
            raise Refused(f"there is no database at {self._path}")

    def schema(self, table: str, columns: Sequence[str] | None) -> pa.Schema:
        for name in columns or ():
            if name not in SCHEMA.names:
                raise Refused(f"table {table!r} has no column {name!r}; it has {', '.join(SCHEMA.names)}")
        names = {name for _, name, *_ in self._rows(sql.QUEUES)}
        if self._queue is not None and self._queue not in names:
            raise self._no_queue(self._queue)
        return SCHEMA if columns is None else pa.schema([SCHEMA.field(name) for name in columns])

    def bounds(self) -> Bounds:
        [(first, last)] = self._rows(sql.JOURNAL_BOUNDS)
        [(incarnation,)] = self._rows(sql.INCARNATION)
        return Bounds(last or 0, max(0, (first or 0) - 1), incarnation)

    def reach(self, after: int, events: int) -> int:
        reached = max(after, self.bounds().last)
        for too_many, first in self._rows(sql.JOURNAL_REACH, {"after": after, "events": events}):
            reached = max(too_many - 1, first)
        return reached

    def events(self, span: Span, queue: str | None, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with closing(self._open()) as connection:
            self._check(connection)
            [(incarnation,)] = _asked(connection, sql.INCARNATION)
            names = {number: name for number, name, *_ in _asked(connection, sql.QUEUES)}
            wanted = {number for number, name in names.items() if queue in {None, name}}
            if queue is not None and not wanted:
                raise self._no_queue(queue)
            after = span.after
            while after < span.upto:
                rows = self._page(connection, Span(after, span.upto))
                if not rows:
                    return
                after = rows[-1].position
                here = [row for row in rows if queue is None or row.queue in wanted]
                try:
                    yield events_batch(here, names, incarnation, columns)
                except HQError as error:
                    raise HqError(f"{self._path}: {error}") from error

    def last_sequence(self, queue: str) -> int:
        raise self._over_http(queue)

    def messages(self, table: str, queue: str, _: Span, __: Sequence[str]) -> Iterator[pa.RecordBatch]:
        raise self._over_http(f"{table} of {queue}")

    def _over_http(self, what: str) -> OptionInvalid:
        return OptionInvalid(f"{what} can be read over http alone: {self._path} does not have all of it")

    def _no_queue(self, queue: str) -> Refused:
        return Refused(f"there is no queue {queue!r} in {self._path}", "queue_not_found")

    def _page(self, connection: sqlite3.Connection, span: Span) -> list[JournalRow]:
        """The next rows, within bounds, as of one moment."""
        connection.execute("BEGIN")
        try:
            [(lowest,)] = _asked(connection, sql.LOWEST_POSITION)
            if lowest is not None and span.after < lowest - 1:
                raise DataLost(
                    f"this part of the journal of {self._path} is no longer kept; it begins at {lowest}"
                )
            values = {"after": span.after, "upto": span.upto, "limit": PAGE_ROWS}
            found, held = [], 0
            for row in connection.execute(sql.JOURNAL_ROWS_UP_TO, values):
                found.append(JournalRow(*row))
                held += len(found[-1].body)
                if held >= PAGE_BYTES:
                    break
            return found
        finally:
            connection.execute("COMMIT")

    def _rows(self, statement: str, values: dict[str, Any] | None = None) -> list[Any]:
        with closing(self._open()) as connection:
            self._check(connection)
            return _asked(connection, statement, values)

    def _open(self) -> sqlite3.Connection:
        try:
            return sqlite3.connect(
                f"file:{quote(str(self._path))}?mode=ro", timeout=BUSY_S, isolation_level=None, uri=True
            )
        except sqlite3.Error as error:
            raise HqError(f"{self._path} cannot be opened: {error}") from error

    def _check(self, connection: sqlite3.Connection) -> None:
        try:
            found = _asked(connection, sql.READ_REVISION) if _asked(connection, sql.HAS_REVISION) else []
        except sqlite3.Error as error:
            raise HqError(f"{self._path} cannot be read: {error}") from error
        if not found:
            raise Refused(f"{self._path} is no database of hq")
        [(revision,)] = found
        if revision != REVISION:
            raise HqError(
                f"{self._path} has schema {revision}, this hq reads {REVISION}: install the hq that wrote it"
            )


def _asked(connection: sqlite3.Connection, statement: str, values: dict[str, Any] | None = None) -> list[Any]:
    return connection.execute(statement, values or {}).fetchall()
