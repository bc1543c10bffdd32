"""Events to messages, attempts and five-minute statistics: what is new since the last build, and no more.

A message that new events are about is made again from all its events, and the days it is in are written
again; other days are left alone. Statistics are added up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from hq.pipeline import facts
from hq.pipeline.lake import Lake
from hq.pipeline.manifest import DataFile, Manifest
from hq.pipeline.timeline import timeline

ROWS_PER_FILE = 1_000_000


class Built(NamedTuple):
    """What a run has done."""

    events: int
    messages: int
    attempts: int
    days: int


def build(spark: SparkSession, lake: Lake) -> Built:
    """Bring all tables to where the events are."""
    with lake.held() as manifest:
        if manifest.built == manifest.archived:
            return Built(0, manifest.rows("messages"), manifest.rows("attempts"), 0)
        return _Build(spark, lake, manifest).run()


class _Build:
    """One run."""

    def __init__(self, spark: SparkSession, lake: Lake, manifest: Manifest) -> None:
        self._spark = spark
        self._lake = lake
        self._manifest = manifest
        self._name = f"{manifest.number + 1:08d}"
        self._days: set[str] = set()

    def run(self) -> Built:
        """Make all tables, and put them in force together."""
        manifest, spark = self._manifest, self._spark
        fresh = [file for file in manifest.files("events") if self._is_new(file)]
        events = self._lake.read(spark, "events", manifest)
        new = self._lake.frame(spark, "events", fresh).where(f"position > {manifest.built}")
        touched = self._touched(new)
        purged = facts.purges(spark, events)
        told = timeline(spark, new if touched is None else self._all_of(touched, events, fresh))
        held = [frame.persist(StorageLevel.MEMORY_AND_DISK) for frame in (told, touched) if frame is not None]
        try:
            tables = {
                "messages": self._again("messages", facts.messages(spark, told, purged), touched),
                "attempts": self._again("attempts", facts.attempts(spark, told), touched),
                "stats_5m": self._added(told, purged),
            }
        finally:
            for frame in held:
                frame.unpersist()
        after = self._lake.publish(manifest.following(tables, built=manifest.archived))
        rows = sum(file.rows for file in fresh)
        return Built(rows, after.rows("messages"), after.rows("attempts"), len(self._days))

    def _is_new(self, file: DataFile) -> bool:
        return file.upto > self._manifest.built

    def _touched(self, new: DataFrame) -> DataFrame | None:
        """The messages to make again, and the day they are in; None if all are new."""
        if not self._manifest.files("messages"):
            return None
        old = self._lake.read(self._spark, "messages", self._manifest)
        emptied = facts.purges(self._spark, new).select("queue").distinct()
        ids = new.select("message_id").where("message_id IS NOT NULL")
        ids = ids.union(
            old.where("outcome = 'open'").join(emptied, "queue", "left_semi").select("message_id")
        )
        return ids.distinct().join(old.select("message_id", "day"), "message_id", "left")

    def _all_of(self, touched: DataFrame, events: DataFrame, fresh: Iterable[DataFile]) -> DataFrame:
        """All events of some messages; none is older than its message or than what is new."""
        [(earliest,)] = touched.selectExpr("CAST(min(day) AS STRING)").collect()
        days = [file.day for file in fresh] + ([] if earliest is None else [earliest])
        since = events.where(f"day >= DATE'{min(days)}'")
        return since.join(touched.select("message_id"), "message_id", "left_semi")

    def _again(self, table: str, rows: DataFrame, touched: DataFrame | None) -> tuple[DataFile, ...]:
        """A table with the rows of these messages made anew."""
        old = self._manifest.files(table)
        if touched is None or not old:
            return self._written(table, rows, ())
        before = self._lake.frame(self._spark, table, old)
        ids = touched.select("message_id")
        days = {
            str(row.day)
            for row in before.join(ids, "message_id", "left_semi").select("day").distinct().collect()
        }
        replaced = [file for file in old if file.day in days]
        if replaced:
            kept = self._lake.frame(self._spark, table, replaced).join(ids, "message_id", "left_anti")
            rows = rows.unionByName(kept.select(rows.columns))
        return self._written(table, rows, [file for file in old if file.day not in days])

    def _added(self, told: DataFrame, purged: DataFrame) -> tuple[DataFile, ...]:
        """Statistics with what is new added to those of its days."""
        old = self._manifest.files("stats_5m")
        since = f"position > {self._manifest.built}"
        new, emptied = told.where(since), purged.where(since)
        found = new.select("at").union(emptied.select("at")).selectExpr(facts.DAY.format(at="at")).distinct()
        days = {str(row.day) for row in found.collect()}
        same = [file for file in old if file.day in days]
        before = self._lake.frame(self._spark, "stats_5m", same) if same else None
        rows = facts.stats(self._spark, new, emptied, before)
        return self._written("stats_5m", rows, [file for file in old if file.day not in days])

    def _written(self, table: str, rows: DataFrame, kept: Iterable[DataFile]) -> tuple[DataFile, ...]:
        def write(folder: str) -> None:
            rows.write.partitionBy("day").option("compression", "zstd").parquet(folder)

        entered = self._lake.enter(self._lake.stage(table, self._name, write))
        self._days |= {file.day for file in entered}
        return (*kept, *entered)
