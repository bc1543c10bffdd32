"""Files into a queue: a message for every line or row, in parallel, and each once however often it is run.

A row's key is a column of it, or what it says and how many that say the same came before it: so two rows that
are alike are two messages, and a row that is loaded again is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from hq.errors import InvalidInput
from hq.pipeline.sending import Sent, send
from hq.pipeline.store import Place

FORMATS = {"ndjson": "ndjson", "jsonl": "ndjson", "json": "ndjson", "csv": "csv", "parquet": "parquet"}


class Loading(NamedTuple):
    """What to load: where it goes, which column has the key, which the payload, and of which format it is."""

    queue: str
    key: str | None = None
    payload: str | None = None
    format: str | None = None
    dedup_ms: int | None = None


def load(spark: SparkSession, place: Place, files: Sequence[str], loading: Loading) -> Sent:
    """Load them all; whatever of them the queue still remembers adds nothing."""
    kind = loading.format or _format(files)
    rows = _lines(spark, files, loading) if kind == "ndjson" else _rows(spark, files, kind, loading)
    # One file may be one partition, and Spark puts small ones together; requests are to run side by side.
    spread = rows.repartition(2 * spark.sparkContext.defaultParallelism)
    return send(spread, place, loading.queue, dedup_ms=loading.dedup_ms)


def _lines(spark: SparkSession, files: Sequence[str], loading: Loading) -> DataFrame:
    """A line is a payload as it is."""
    if loading.payload is not None:
        raise InvalidInput("a line of NDJSON is a payload as it is: a payload column is for csv and parquet")
    lines = spark.read.text(list(files)).where("trim(value) <> ''").withColumnRenamed("value", "payload")
    if loading.key is None:
        return _counted(lines)
    return lines.withColumn("dedup_key", f.get_json_object("payload", f"$.{loading.key}"))


def _rows(spark: SparkSession, files: Sequence[str], kind: str, loading: Loading) -> DataFrame:
    reader = spark.read.option("header", "true") if kind == "csv" else spark.read
    table = reader.format(kind).load(list(files))
    for wanted in (loading.key, loading.payload):
        if wanted is not None and wanted not in table.columns:
            raise InvalidInput(f"there is no column {wanted!r}; there are {', '.join(table.columns)}")
    payload = f.to_json(f.struct("*")) if loading.payload is None else f.col(f"`{loading.payload}`")
    if loading.key is None:
        return _counted(table.select(payload.alias("payload")))
    return table.select(payload.alias("payload"), f.col(f"`{loading.key}`").cast("string").alias("dedup_key"))


def _counted(rows: DataFrame) -> DataFrame:
    """Rows keyed by what they say, those that say the same numbered."""
    said = rows.withColumn("said", f.sha2(f.col("payload").cast("binary"), 256))
    return said.selectExpr(
        "payload", "concat(said, '-', row_number() OVER (PARTITION BY said ORDER BY said)) AS dedup_key"
    )


def _format(files: Sequence[str]) -> str:
    endings = {file.removesuffix(".gz").rpartition(".")[2].lower() for file in files}
    found = {FORMATS.get(ending) for ending in endings}
    if len(found) != 1 or None in found:
        raise InvalidInput("say the format, ndjson, csv or parquet: the names of the files do not tell one")
    return str(found.pop())
