"""hq as Spark sees it: what `format("hq")` is, and reading a table in one go."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from pyspark_hq.errors import DataLost, OptionInvalid, Refused
from pyspark_hq.options import Options
from pyspark_hq.sink import MessageSink, MessageStreamSink
from pyspark_hq.stores import Span, Store, open_store
from pyspark_hq.streams import JournalStream, SpanPartition, event_batches, split

PLANNING_MS = 3_000
"""How long a server may be gone while a job is planned: a wrong address is told soon."""
_PUSHDOWN = "pyspark.sql.worker.data_source_pushdown_filters"


class HqSource(DataSource):
    """The data source; Spark makes one for every question it has."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._hq = Options.parse(options)

    @classmethod
    def name(cls) -> str:
        return "hq"

    def schema(self) -> StructType:
        store = open_store(self._hq, min(PLANNING_MS, self._hq.retry_ms))
        schema = store.schema(self._hq.table, self._hq.columns)
        if not self._hq.payload:
            schema = pa.schema([field for field in schema if field.name != "payload"])
        return from_arrow_schema(schema, prefer_timestamp_ntz=False)

    def reader(self, schema: StructType) -> DataSourceReader:
        # A reader that can take filters makes Spark fail where push-down is off, so only the worker that
        # pushes filters gets one.
        kind = FilteredReader if _PUSHDOWN in sys.modules else TableReader
        return kind(self._hq, schema)

    def streamReader(self, schema: StructType) -> JournalStream:  # noqa: N802 - Spark's name
        if self._hq.table != "events":
            raise OptionInvalid(f"table {self._hq.table!r} cannot be streamed: only events never change")
        return JournalStream(self._hq, schema)

    def writer(self, schema: StructType, overwrite: bool) -> MessageSink:  # noqa: FBT001 - Spark's call
        _refuse(overwrite=overwrite)
        return MessageSink(self._hq, schema, min(PLANNING_MS, self._hq.retry_ms))

    def streamWriter(self, schema: StructType, overwrite: bool) -> MessageStreamSink:  # noqa: FBT001, N802 - Spark's
        _refuse(overwrite=overwrite)
        return MessageStreamSink(self._hq, schema, self._hq.retry_ms)


def _refuse(*, overwrite: bool) -> None:
    if overwrite:
        raise OptionInvalid("a queue cannot be overwritten: write with mode append")


class TableReader(DataSourceReader):
    """A table in ranges of positions or sequences, fixed when the job is planned."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._first = 1
        # A queue that is asked for by an option must be there; of one in a filter there are no rows.
        self._by_filter = False
        self._last: int | None = options.to_position

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        store = open_store(options, min(PLANNING_MS, options.retry_ms))
        span = self._events(store) if options.table == "events" else self._messages(store)
        # Spark takes no partitions at all for one that says nothing.
        return split(span, options.partitions) or [SpanPartition(0, 0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SpanPartition)
        options, names = self._options, self._schema.names
        target = to_arrow_schema(self._schema, timezone="UTC")
        store = open_store(options, options.retry_ms)
        span = Span(partition.after, partition.upto)
        if options.table == "events":
            batches = event_batches(store, options, span, names)
        else:
            assert options.queue is not None
            batches = store.messages(options.table, options.queue, span, names)
        try:
            for batch in batches:
                if batch.num_rows:
                    yield batch.cast(target)
        except Refused as refusal:
            if refusal.code != "queue_not_found" or not self._by_filter:
                raise

    def _events(self, store: Store) -> Span:
        bounds, options = store.bounds(), self._options
        asked = options.from_position or 1
        if options.from_position is not None and asked <= bounds.pruned and options.fail_on_data_loss:
            raise DataLost(
                f"positions {asked} to {bounds.pruned} of the journal are no longer kept: read from"
                f" {bounds.pruned + 1}, or set fail_on_data_loss to false"
            )
        after = max(asked - 1, self._first - 1, bounds.pruned)
        return Span(after, bounds.last if self._last is None else min(self._last, bounds.last))

    def _messages(self, store: Store) -> Span:
        assert self._options.queue is not None
        return Span(0, store.last_sequence(self._options.queue))


class FilteredReader(TableReader):
    """The same where Spark pushes filters down: by position and queue of events."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        for one in filters:
            if self._options.table != "events" or not self._take(one):
                yield one

    def _take(self, one: Filter) -> bool:
        match one:
            case EqualTo(("queue",), str(queue)) if self._options.queue in {None, queue}:
                self._by_filter = self._by_filter or self._options.queue is None
                self._options = replace(self._options, queue=queue)
            case EqualTo(("position",), int(position)):
                self._narrow(position, position)
            case GreaterThan(("position",), int(position)):
                self._narrow(position + 1, None)
            case GreaterThanOrEqual(("position",), int(position)):
                self._narrow(position, None)
            case LessThan(("position",), int(position)):
                self._narrow(None, position - 1)
            case LessThanOrEqual(("position",), int(position)):
                self._narrow(None, position)
            case _:
                return False
        return True

    def _narrow(self, first: int | None, last: int | None) -> None:
        if first is not None:
            self._first = max(first, self._first)
        if last is not None:
            self._last = last if self._last is None else min(last, self._last)
