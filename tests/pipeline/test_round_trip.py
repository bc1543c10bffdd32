"""What Spark writes it reads again: on every backend, from the server and from where it is stored."""

import asyncio
from uuid import uuid4

import pytest

from tests.conftest import execute, in_database
from tests.pipeline.marks import spark_test
from tests.pipeline.serving import Served

pytestmark = spark_test

ROWS = 1_500


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def place(request, tmp_path_factory):
    """A server, and the url of what it stores."""
    if request.param == "sqlite":
        database = tmp_path_factory.mktemp("place") / "hq.db"
        served = Served(database)
        yield served, f"sqlite:///{database}"
        served.stop()
        return
    server, name = request.getfixturevalue("postgres_server"), f"hq_spark_{uuid4().hex[:12]}"
    asyncio.run(execute(server, f"CREATE DATABASE {name}"))
    url = in_database(server, name)
    served = Served(url)
    yield served, url
    served.stop()
    asyncio.run(execute(server, f"DROP DATABASE {name} WITH (FORCE)"))


def test_what_is_written_is_read(spark, place):
    server, direct = place
    server.create("jobs")
    rows = spark.range(0, ROWS, 1, 2).selectExpr(
        "concat('{\"n\":', id, '}') AS payload", "id AS dedup_key", "map('a', string(id)) AS headers",
        "int(id % 10) AS priority",
    )  # fmt: skip
    rows.write.format("hq").options(url=server.url, queue="jobs").mode("append").save()
    held = server.ask("POST", "/queues/jobs/poll?batch=10")["messages"]
    server.ask("POST", "/queues/jobs/ack", [{"id": one["id"], "token": one["token"]} for one in held])
    expected = sorted(
        tuple(row) for row in rows.selectExpr("string(dedup_key)", "payload", "priority").collect()
    )

    def read(url, **options):
        return spark.read.format("hq").options(url=url, queue="jobs", **options).load()

    def said(frame):
        columns = ("dedup_key", "string(payload)", "priority")
        return sorted(tuple(row) for row in frame.selectExpr(*columns).collect())

    for url in (server.url, direct):
        assert said(read(url).where("event = 'enqueued'")) == expected
        assert read(url).where("event = 'completed'").count() == 10
    waiting = read(server.url, table="messages")
    assert waiting.count() == ROWS - 10
    assert set(said(waiting)) < set(expected)
    assert all(row.headers == {"a": row.dedup_key} for row in waiting.collect())


def test_server_and_storage_say_the_same(spark, place):
    server, direct = place
    server.create("failing", max_attempts=2)
    server.enqueue("failing", [1, 2, 3], ttl_ms=60_000, priority=3, group="g", headers={"a": "b"})
    held = server.ask("GET", "/queues/failing/receive?holder=me")
    server.ask("POST", "/queues/failing/fail", {"id": held["id"], "token": held["token"], "error": "no"})

    def told(url):
        frame = spark.read.format("hq").options(url=url, queue="failing").load()
        return frame.schema, sorted(
            (row.asDict() for row in frame.collect()), key=lambda row: (row["position"], row["sequence"])
        )

    assert told(direct) == told(server.url)


def test_a_stream_of_storage_goes_on_where_it_stopped(spark, place, tmp_path):
    server, direct = place
    server.create("streamed")

    def run():
        frame = spark.readStream.format("hq").options(url=direct, queue="streamed").load()
        sink = frame.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        query = sink.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        query.start().awaitTermination()
        rows = spark.read.parquet(str(tmp_path / "out")).where("event = 'enqueued'").collect()
        return sorted(int(bytes(row.payload)) for row in rows)

    server.enqueue("streamed", range(200))
    assert run() == list(range(200))
    server.enqueue("streamed", range(200, 300))
    assert run() == list(range(300))
