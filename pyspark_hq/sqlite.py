"""The journal of a SQLite file, read directly and read-only, beside the process that writes it.

Every page is a transaction of its own, so that no reader keeps the writer's log from being reset.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from hq.backends.port import JournalRow
from hq.backends.sqlite import statements as sql
from hq.backends.sqlite.schema import REVISION
from hq.errors import JournalPruned
from pyspark_hq.direct import PAGE_ROWS, DirectStore
from pyspark_hq.errors import HqError, OptionInvalid, Refused
from pyspark_hq.options import Options
from pyspark_hq.stores import Bounds, Span

PAGE_BYTES = 8 << 20
BUSY_S = 5.0


def open_store(options: Options, _patience_ms: int) -> DirectStore:
    """The store in the file of the job's url."""
    where = urlsplit(options.url)
    if where.netloc or not where.path.startswith("/") or where.path == "/":
        raise OptionInvalid("a database is named sqlite:///path, or sqlite:////path from the root")
    path = Path(unquote(where.path[1:])).absolute()
    store = DirectStore(options, str(path), partial(_opened, path))
    if not path.is_file():
        raise Refused(f"there is no database at {path}")
    return store


class _File:
    """One file, open."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection

    def incarnation(self) -> int:
        [(incarnation,)] = self._rows(sql.INCARNATION)
        return int(incarnation)

    def queues(self) -> dict[int, str]:
        return {number: name for number, name, *_ in self._rows(sql.QUEUES)}

    def bounds(self) -> Bounds:
        [(first, last, _)] = self._rows(sql.JOURNAL_BOUNDS)
        return Bounds(last or 0, max(0, (first or 0) - 1), self.incarnation())

    def reach(self, after: int, events: int) -> int:
        for too_many, first in self._rows(sql.JOURNAL_REACH, {"after": after, "events": events}):
            return max(int(too_many) - 1, int(first))
        return max(after, self.bounds().last)

    def count(self, span: Span) -> int:
        [(events,)] = self._rows(sql.JOURNAL_COUNT, span._asdict())
        return int(events)

    def page(self, span: Span) -> list[JournalRow]:
        self._connection.execute("BEGIN")
        try:
            [(lowest,)] = self._rows(sql.LOWEST_POSITION)
            if lowest is not None and span.after < lowest - 1:
                raise JournalPruned(lowest)
            values = {"after": span.after, "upto": span.upto, "limit": PAGE_ROWS}
            found, held = [], 0
            for row in self._connection.execute(sql.JOURNAL_ROWS_UP_TO, values):
                found.append(JournalRow(*row))
                held += len(found[-1].body)
                if held >= PAGE_BYTES:
                    break
            return found
        finally:
            self._connection.execute("COMMIT")

    def check(self) -> None:
        """Whether it is one of hq's, and of this version."""
        found = self._rows(sql.READ_REVISION) if self._rows(sql.HAS_REVISION) else []
        if not found:
            raise Refused(f"{self._path} is no database of hq")
        [(revision,)] = found
        if revision != REVISION:
            raise HqError(
                f"{self._path} has schema {revision}, this hq reads {REVISION}: install the hq that wrote it"
            )

    def _rows(self, statement: str, values: dict[str, Any] | None = None) -> list[Any]:
        return self._connection.execute(statement, values or {}).fetchall()


@contextmanager
def _opened(path: Path) -> Iterator[_File]:
    place = f"file:{quote(str(path))}?mode=ro"
    try:
        with closing(sqlite3.connect(place, timeout=BUSY_S, isolation_level=None, uri=True)) as connection:
            file = _File(path, connection)
            file.check()
            yield file
    except sqlite3.Error as error:
        raise HqError(f"{path} cannot be read: {error}") from error
