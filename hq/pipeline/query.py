"""SQL over a lake: its tables as views, by their names, and dead letters as one more."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from hq.pipeline.lake import Lake
from hq.pipeline.manifest import TABLES


def views(spark: SparkSession, lake: Lake) -> None:
    """Give Spark a view of every table that has rows."""
    manifest = lake.manifest()
    for table in TABLES:
        if manifest.files(table):
            lake.read(spark, table, manifest).createOrReplaceTempView(table)
    if manifest.files("messages"):
        spark.table("messages").where("outcome = 'failed'").createOrReplaceTempView("dead")


def query(spark: SparkSession, lake: Lake, statement: str) -> DataFrame:
    """What a statement says over these views."""
    views(spark, lake)
    return spark.sql(statement)
