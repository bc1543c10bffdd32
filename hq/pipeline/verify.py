"""Whether a lake is whole: every file there with the rows and bytes it had, and no event missing or twice."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from hq.pipeline.files import digest
from hq.pipeline.lake import Lake
from hq.pipeline.manifest import TABLES, DataFile, Manifest

# Every event of a queue has its own sequence, so what a queue has between its first and last is known. A
# queue that is deleted has lost its name, and one of that name begins anew: neither is asked.
_GAPS = """
SELECT queue, count(*) AS events, count(DISTINCT sequence) AS sequences,
       max(sequence) - min(sequence) + 1 AS wanted
FROM {events} WHERE queue IS NOT NULL GROUP BY queue
HAVING events <> wanted OR events <> sequences ORDER BY queue
"""


def verify(spark: SparkSession, lake: Lake) -> list[str]:
    """What is wrong with it, a sentence each."""
    manifest = lake.manifest()
    wrong = [problem for table in TABLES for file in manifest.files(table) for problem in _file(lake, file)]
    wrong += _strangers(lake, manifest)
    if not wrong and manifest.files("events"):
        wrong += _gaps(spark, lake, manifest)
    return wrong


def _file(lake: Lake, file: DataFile) -> Iterator[str]:
    try:
        with lake.files.open(file.path) as opened:
            if digest(opened) != file.sha256:
                yield f"{file.path} is not what was written: its sum is another"
            elif pq.ParquetFile(opened).metadata.num_rows != file.rows:
                yield f"{file.path} does not have the {file.rows} rows it should"
    except FileNotFoundError:
        yield f"{file.path} is missing"
    except (OSError, pa.ArrowException) as error:
        yield f"{file.path} cannot be read: {error}"


def _strangers(lake: Lake, manifest: Manifest) -> Iterator[str]:
    named = {file.path for table in TABLES for file in manifest.files(table)}
    for table in TABLES:
        for path in lake.files.below(table):
            if path not in named:
                yield f"{path} is in no manifest: a job was killed, and the next one takes it away"


def _gaps(spark: SparkSession, lake: Lake, manifest: Manifest) -> Iterator[str]:
    for row in spark.sql(_GAPS, events=lake.read(spark, "events", manifest)).collect():
        yield f"queue {row.queue} has {row.events} events where its sequences tell of {row.wanted}"
