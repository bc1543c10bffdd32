"""The tables of a lake, against what can be worked out by hand, and made in one go or in two."""

import asyncio
from datetime import UTC

import numpy as np
import pytest

from hq.pipeline.archive import archive, by_spark
from hq.pipeline.build import build
from hq.pipeline.store import Place
from tests.pipeline.fixed import START, S, write_first, write_second
from tests.pipeline.lakes import lake_at, rows_found, rows_named
from tests.pipeline.marks import spark_test

pytestmark = spark_test


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/hq.db"


def second(instant):
    return None if instant is None else round(instant.timestamp() * S - START) / S


def fill(spark, url, folder):
    place = Place(url)
    archive(lake_at(folder), place, by_spark(spark, place))
    return build(spark, lake_at(folder))


def table(spark, folder, name, *columns):
    return sorted(
        (tuple(row) for row in lake_at(folder).read(spark, name).selectExpr(*columns).collect()), key=str
    )


MESSAGE = (
    "queue",
    "dedup_key",
    "outcome",
    "leases",
    "retries",
    "lapses",
    "wait_ms",
    "work_ms",
    "reason",
    "error",
)


def test_messages_are_what_came_of_them(spark, url, tmp_path):
    asyncio.run(write_first(url))
    asyncio.run(write_second(url))
    fill(spark, url, tmp_path / "lake")

    emails = [row for row in table(spark, tmp_path / "lake", "messages", *MESSAGE) if row[0] == "emails"]
    assert emails == [
        ("emails", "a", "completed", 1, 0, 0, 2_000, 3_000, None, None),
        ("emails", "b", "completed", 2, 1, 0, 2_000, 2_000, None, "timeout after 17 ms"),
        ("emails", "c", "failed", 2, 0, 1, 9_000, 7_000, "failed", "bad address 42"),
        ("emails", "d", "open", 0, 0, 0, None, None, None, None),
        ("emails", "e", "deleted", 0, 0, 0, None, None, None, None),
    ]
    ends = (
        lake_at(tmp_path / "lake")
        .read(spark, "messages")
        .select("dedup_key", "enqueued_at", "ended_at", "day")
    )
    found = {row.dedup_key: (second(utc(row.enqueued_at)), second(utc(row.ended_at)), str(row.day))
             for row in ends.where("queue = 'emails'").collect()}  # fmt: skip
    assert found["c"] == (0, 21, "2026-03-01")
    assert found["e"] == (660, 661, "2026-03-02")
    purged = ends.where("queue = 'other'").collect()
    assert [second(utc(row.ended_at)) for row in purged] == [661, 661, 661]


def utc(instant):
    # Spark gives the wall of this machine.
    return None if instant is None else instant.astimezone(UTC)


ATTEMPT = ("dedup_key", "receive", "holder", "result", "a.wait_ms", "a.work_ms", "a.error")


def test_attempts_are_what_came_of_each_lease(spark, url, tmp_path):
    asyncio.run(write_first(url))
    asyncio.run(write_second(url))
    fill(spark, url, tmp_path / "lake")
    lake = lake_at(tmp_path / "lake")

    joined = lake.read(spark, "attempts").alias("a").join(
        lake.read(spark, "messages").select("message_id", "dedup_key"), "message_id"
    )  # fmt: skip
    assert sorted(tuple(row) for row in joined.selectExpr(*ATTEMPT).collect()) == [
        ("a", 1, "w1", "completed", 2_000, 3_000, None),
        ("b", 1, "w1", "retried", 2_000, 1_000, "timeout after 17 ms"),
        ("b", 2, "w2", "completed", 2_000, 1_000, None),
        ("c", 1, "w2", "lapsed", 9_000, 6_000, None),
        ("c", 2, "w1", "failed", 5_000, 1_000, "bad address 42"),
    ]


def test_tables_built_in_two_goes_are_the_same_as_in_one(spark, url, tmp_path):
    asyncio.run(write_first(url))
    first = fill(spark, url, tmp_path / "twice")
    assert fill(spark, url, tmp_path / "twice").events == 0
    asyncio.run(write_second(url))
    fill(spark, url, tmp_path / "twice")
    fill(spark, url, tmp_path / "once")

    assert first.messages == 7
    for name in ("messages", "attempts", "stats_5m"):
        columns = [
            c for c in lake_at(tmp_path / "once").read(spark, name).columns if not c.endswith("_sketch")
        ]
        quoted = [f"`{column}`" for column in columns]
        twice, once = (table(spark, tmp_path / folder, name, *quoted) for folder in ("twice", "once"))
        assert twice == once, name
    key = ["message_id", "outcome"]
    assert rows_found(tmp_path / "twice", "messages", key) == rows_named(tmp_path / "twice", "messages", key)


def test_five_minutes_are_counted_and_their_sketches_add_up(spark, url, tmp_path):
    asyncio.run(write_first(url))
    fill(spark, url, tmp_path / "lake")
    asyncio.run(write_second(url))
    fill(spark, url, tmp_path / "lake")

    found = table(
        spark, tmp_path / "lake", "stats_5m", "queue", "unix_millis(window_start)", "enqueued", "received",
        "completed", "retried", "lapsed", "failed", "change", "waits", "works",
    )  # fmt: skip
    assert [(queue, (at - START) // S, *counts) for queue, at, *counts in found] == [
        ("emails", 0, 4, 5, 2, 1, 1, 1, 1, 5, 5),
        ("emails", 600, 1, 0, 0, 0, 0, 0, 0, 0, 0),
        ("other", 0, 3, 0, 0, 0, 0, 0, 3, 0, 0),
        ("other", 600, 0, 0, 0, 0, 0, 0, -3, 0, 0),
    ]
    quantiles = lake_at(tmp_path / "lake").read(spark, "stats_5m").where("waits > 0").selectExpr(
        "kll_sketch_get_quantile_bigint(wait_sketch, array(0.0, 0.5, 1.0)) AS q"
    )  # fmt: skip
    [row] = quantiles.collect()
    assert list(row.q) == list(np.percentile([2_000, 2_000, 2_000, 9_000, 5_000], [0, 50, 100]))
