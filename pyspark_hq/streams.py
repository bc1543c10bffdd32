"""The journal as a stream: offsets are positions, and name the store whose positions they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from pyspark_hq.errors import DataLost
from pyspark_hq.options import Options
from pyspark_hq.stores import Bounds, Span, Store, open_store

Offset = dict[str, Any]
VERSION = 1


class SpanPartition(InputPartition):
    """What one task reads: after a position or sequence, up to another."""

    def __init__(self, after: int, upto: int) -> None:
        super().__init__((after, upto))
        self.after = after
        self.upto = upto


def split(span: Span, parts: int) -> list[SpanPartition]:
    """A range in so many parts of about equal length; fewer if it is short, none if it is empty."""
    after, length = span.after, span.upto - span.after
    parts = min(parts, length)
    ends = [after + length * part // parts for part in range(parts + 1)] if parts > 0 else []
    return [SpanPartition(start, end) for start, end in pairwise(ends)]


def event_batches(
    store: Store, options: Options, span: Span, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The events of a range. What was pruned meanwhile is an error, or left out if the job says so."""
    after = span.after
    while after < span.upto:
        try:
            yield from store.events(Span(after, span.upto), options.queue, columns)
        except DataLost:
            pruned = store.bounds().pruned
            if options.fail_on_data_loss or pruned <= after:
                raise
            after = pruned
        else:
            return


class JournalStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Every event once: a batch that is read again is the same range."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._target: int | None = None

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self._options.max_rows_per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._target = self._open().bounds().last

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        bounds = self._open().bounds()
        starting = self._options.starting
        if starting == "earliest":
            return _offset(bounds.pruned, bounds)
        if starting == "latest":
            return _offset(bounds.last, bounds)
        after = max(0, int(starting) - 1)
        self._check_kept(after, bounds)
        return _offset(after, bounds)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        store = self._open()
        bounds = store.bounds()
        after = _position(start, bounds)
        self._check_kept(after, bounds)
        upto = bounds.last
        if self._target is not None:
            upto = min(upto, self._target)
        if isinstance(limit, ReadMaxRows) and after < upto:
            upto = min(upto, store.reach(after, limit.max_rows))
        return _offset(max(after, upto), bounds)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        bounds = self._open().bounds()
        after, upto = _position(start, bounds), _position(end, bounds)
        self._check_kept(after, bounds)
        return split(Span(max(after, min(bounds.pruned, upto)), upto), self._options.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SpanPartition)
        target = to_arrow_schema(self._schema, timezone="UTC")
        span = Span(partition.after, partition.upto)
        for batch in event_batches(self._open(), self._options, span, self._schema.names):
            if batch.num_rows:
                yield batch.cast(target)

    def _open(self) -> Store:
        return open_store(self._options, self._options.retry_ms)

    def _check_kept(self, after: int, bounds: Bounds) -> None:
        if after < bounds.pruned and self._options.fail_on_data_loss:
            raise DataLost(
                f"this stream has read up to position {after}, but the journal now begins at"
                f" {bounds.pruned + 1}: start anew, or set fail_on_data_loss to false to go on there"
            )


def _offset(position: int, bounds: Bounds) -> Offset:
    return {"v": VERSION, "position": position, "incarnation": bounds.incarnation}


def _position(offset: Offset, bounds: Bounds) -> int:
    """The position of an offset, if it is one of this store."""
    if offset.get("v") != VERSION:
        raise DataLost(f"this checkpoint was written by another version of hq: its offset is {offset}")
    if offset["incarnation"] != bounds.incarnation:
        raise DataLost(
            "this checkpoint belongs to another store, or to this one before it was restored: start anew with"
            " another checkpoint"
        )
    position: int = offset["position"]
    return position
