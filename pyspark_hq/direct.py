"""A journal that is read where it is stored, beside the process that writes it.

hq itself must be installed where this runs: what is stored only hq can decode. Messages are read over HTTP
alone, because storage lacks what its writer has not put into a checkpoint yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import pyarrow as pa

from hq.backends.port import JournalRow
from hq.errors import HQError, JournalPruned
from hq.tables.events import SCHEMA, events_batch
from pyspark_hq.errors import DataLost, HqError, OptionInvalid, Refused
from pyspark_hq.options import Options
from pyspark_hq.stores import Bounds, Span

PAGE_ROWS = 10_000


class Reading(Protocol):
    """A journal while it is open."""

    def incarnation(self) -> int:
        """Whose positions they are."""

    def queues(self) -> Mapping[int, str]:
        """Their names by number."""

    def bounds(self) -> Bounds:
        """Which positions there are, all of them final."""

    def reach(self, after: int, events: int) -> int:
        """The last position up to which no more than so many events come, or one entry does."""

    def count(self, span: Span) -> int:
        """How many events are in a range, within bounds."""

    def page(self, span: Span) -> list[JournalRow]:
        """The next rows of a range, within bounds; JournalPruned if its beginning is no longer kept."""


class DirectStore:
    """One journal, opened anew for every question."""

    def __init__(
        self, options: Options, place: str, opened: Callable[[], AbstractContextManager[Reading]]
    ) -> None:
        self._queue = options.queue
        self._place = place
        self._opened = opened
        if options.table != "events":
            raise self._over_http(f"table {options.table!r}")

    def schema(self, table: str, columns: Sequence[str] | None) -> pa.Schema:
        for name in columns or ():
            if name not in SCHEMA.names:
                raise Refused(f"table {table!r} has no column {name!r}; it has {', '.join(SCHEMA.names)}")
        with self._opened() as reading:
            if self._queue not in {None, *reading.queues().values()}:
                raise self._no_queue(self._queue)
        return SCHEMA if columns is None else pa.schema([SCHEMA.field(name) for name in columns])

    def bounds(self) -> Bounds:
        with self._opened() as reading:
            return reading.bounds()

    def reach(self, after: int, events: int) -> int:
        with self._opened() as reading:
            return reading.reach(after, events)

    def count(self, span: Span) -> int:
        with self._opened() as reading:
            return reading.count(span)

    def events(self, span: Span, queue: str | None, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self._opened() as reading:
            incarnation, names = reading.incarnation(), reading.queues()
            wanted = {number for number, name in names.items() if queue in {None, name}}
            if queue is not None and not wanted:
                raise self._no_queue(queue)
            after = span.after
            while after < span.upto:
                try:
                    rows = reading.page(Span(after, span.upto))
                    here = [row for row in rows if queue is None or row.queue in wanted]
                    batch = events_batch(here, names, incarnation, columns)
                except JournalPruned as error:
                    raise DataLost(f"{self._place}: {error}") from error
                except HQError as error:
                    raise HqError(f"{self._place}: {error}") from error
                if not rows:
                    return
                after = rows[-1].position
                yield batch

    def close(self) -> None:
        """Nothing is held between questions."""

    def last_sequence(self, queue: str) -> int:
        raise self._over_http(queue)

    def messages(self, table: str, queue: str, _: Span, __: Sequence[str]) -> Iterator[pa.RecordBatch]:
        raise self._over_http(f"{table} of {queue}")

    def _over_http(self, what: str) -> OptionInvalid:
        return OptionInvalid(f"{what} can be read over http alone: {self._place} does not have all of it")

    def _no_queue(self, queue: str | None) -> Refused:
        return Refused(f"there is no queue {queue!r} in {self._place}", "queue_not_found")
