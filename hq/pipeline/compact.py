"""Many small files of a day into few, for days that are over."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import SparkSession

from hq.pipeline.errors import RowsDiffer
from hq.pipeline.lake import Lake
from hq.pipeline.manifest import TABLES, DataFile, Manifest

ROWS_PER_FILE = 2_000_000


class Compacted(NamedTuple):
    """How many files there were in the days that were written anew, and how many there are."""

    days: int
    before: int
    after: int


def compact(spark: SparkSession, lake: Lake, *, today: str) -> Compacted:
    """Write days before this one anew where they have more files than they need, sorted by queue."""
    days = before = after = 0
    with lake.held() as found:
        manifest = found
        for table in TABLES:
            for day in sorted({file.day for file in found.files(table) if file.day < today}):
                old = [file for file in manifest.files(table) if file.day == day]
                if not _is_worth_it(table, old, manifest):
                    continue
                new = _again(spark, lake, manifest, table, old)
                kept = [file for file in manifest.files(table) if file.day != day]
                manifest = lake.publish(manifest.following({table: (*kept, *new)}))
                days, before, after = days + 1, before + len(old), after + len(new)
    return Compacted(days, before, after)


def _is_worth_it(table: str, old: list[DataFile], manifest: Manifest) -> bool:
    # A build reads what is new by the names of segments.
    is_built = table != "events" or max(file.upto for file in old) <= manifest.built
    return is_built and len(old) > _wanted(old)


def _wanted(old: list[DataFile]) -> int:
    return -(-sum(file.rows for file in old) // ROWS_PER_FILE)


def _again(
    spark: SparkSession, lake: Lake, manifest: Manifest, table: str, old: list[DataFile]
) -> tuple[DataFile, ...]:
    frame = lake.frame(spark, table, old)
    order = [name for name in ("queue", "position", "sequence", "message_id") if name in frame.columns]

    def write(folder: str) -> None:
        rows = frame.repartitionByRange(_wanted(old), *order).sortWithinPartitions(*order)
        rows.write.partitionBy("day").option("compression", "zstd").parquet(folder)

    # Its second half is the last position in it, as with a segment.
    upto = max(file.upto for file in old) if table == "events" else 0
    staged = lake.stage(table, f"{manifest.number + 1:019d}-{upto:019d}", write)
    rows, expected = sum(one.file.rows for one in staged), sum(file.rows for file in old)
    if rows != expected:
        raise RowsDiffer(f"{table} of {old[0].day} has {expected} rows, {rows} were written")
    return lake.enter(staged)
