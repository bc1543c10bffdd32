"""Rows to a queue, at a rate if one is wanted, and how many of them were new."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame

from hq.pipeline.store import Place

SLICES = 10
"""At a rate, rows go out so many times a second."""


class Sent(NamedTuple):
    """How many rows became messages, and how many were messages already."""

    added: int
    known: int


def send(
    rows: DataFrame, place: Place, queue: str, *, dedup_ms: int | None = None, rate: int | None = None
) -> Sent:
    """Write rows with a payload and a dedup_key as messages."""
    paced = rows if rate is None else rows.coalesce(1).mapInArrow(_paced(rate), rows.schema)
    options = {**place.options, "queue": queue}
    if dedup_ms is not None:
        options["dedup_ms"] = str(dedup_ms)
    if rate is not None:
        options["batch_rows"] = str(min(1_000, _slice(rate)))
    with tempfile.TemporaryDirectory(prefix="hq-sent-") as folder:
        summary = Path(folder) / "summary.json"
        paced.write.format("hq").options(**options, summary_file=str(summary)).mode("append").save()
        told = json.loads(summary.read_text())
    return Sent(told["stored"], told["duplicates"])


def _slice(rate: int) -> int:
    return max(1, rate // SLICES)


def _paced(rate: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Rows no faster than so many a second; one task does it, so that the rate is that of all."""

    def pace(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begun, sent, size = time.monotonic(), 0, _slice(rate)
        for batch in batches:
            for start in range(0, batch.num_rows, size):
                time.sleep(max(0.0, begun + sent / rate - time.monotonic()))
                part = batch.slice(start, size)
                yield part
                sent += part.num_rows

    return pace
