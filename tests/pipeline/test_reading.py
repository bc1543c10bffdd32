"""Tables of hq as Spark reads them."""

import http.server
import sqlite3
import threading
from contextlib import contextmanager

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

import hq
from hq.tables import events, messages
from tests.pipeline.marks import spark_test

pytestmark = spark_test


def said_of(failed) -> str:
    """What a job that failed says, without the lines of Python and Java it comes with."""
    return str(failed.value)


def payloads(frame) -> list[bytes]:
    return sorted(bytes(row.payload) for row in frame.where("event = 'enqueued'").select("payload").collect())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, events.SCHEMA),
        ({"payload": "false"}, pa.schema([field for field in events.SCHEMA if field.name != "payload"])),
        ({"columns": "event, at"}, pa.schema([events.SCHEMA.field("event"), events.SCHEMA.field("at")])),
        ({"table": "messages"}, messages.SCHEMA),
        ({"table": "dead_letters"}, messages.SCHEMA),
    ],
)
def test_the_columns_are_exactly_these(server, queue, read, options, expected):
    server.enqueue(queue, [1])
    frame = read(queue=queue, **options)
    assert frame.schema == from_arrow_schema(expected, prefer_timestamp_ntz=False)
    assert len(frame.collect()) == (0 if options.get("table") == "dead_letters" else frame.count())


def test_messages_and_dead_letters_are_tables(server, queue, read):
    server.enqueue(queue, range(250))
    held = server.ask("POST", f"/queues/{queue}/poll?batch=50")["messages"]
    server.ask("POST", f"/queues/{queue}/fail", [{"id": one["id"], "token": one["token"]} for one in held])

    waiting = read(table="messages", queue=queue).collect()
    dead = read(table="dead_letters", queue=queue).collect()

    assert sorted(int(bytes(row.payload)) for row in waiting) == list(range(50, 250))
    assert sorted(int(bytes(row.payload)) for row in dead) == list(range(50))
    assert {row.state for row in waiting} == {"ready"}
    assert {(row.state, row.reason) for row in dead} == {("failed", "failed")}


def test_a_range_of_positions_is_read(server, queue, read):
    for number in range(5):
        server.enqueue(queue, [number])
    positions = sorted(row.position for row in read(queue=queue).where("event = 'enqueued'").collect())

    some = read(queue=queue, from_position=positions[1], to_position=positions[3])

    assert payloads(some) == [b"1", b"2", b"3"]


@pytest.mark.parametrize("pushed", ["true", "false"])
def test_a_filter_gives_the_same_rows_whether_or_not_it_is_pushed_down(spark, server, queue, read, pushed):
    for number in range(5):
        server.enqueue(queue, [number])
    positions = sorted(row.position for row in read(queue=queue).where("event = 'enqueued'").collect())
    plain = spark.newSession()
    plain.conf.set("spark.sql.python.filterPushdown.enabled", pushed)
    frame = plain.read.format("hq").option("url", server.url).load()

    some = frame.where(f"position > {positions[0]} AND position <= {positions[3]} AND queue = '{queue}'")
    assert payloads(some) == [b"1", b"2", b"3"]
    assert frame.where("queue = 'no-such-queue'").count() == 0
    # What was pushed down is not filtered again.
    plan = some._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001 - Spark shows a plan no other way
    assert ("position" in plan.partition("Filter")[2].partition("BatchScan")[0]) == (pushed == "false")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"url": "http://127.0.0.1:1"},
            "hq at http://127.0.0.1:1 cannot be reached: [Errno 111] Connection refused",
        ),
        (
            {"url": "ftp://x"},
            "url must begin with http://, https://, postgresql://, postgres://, sqlite://, not ftp:",
        ),
        ({"url": "sqlite:////no/such.db"}, "there is no database at /no/such.db"),
        ({"queue": "no-such-queue"}, "there is no queue 'no-such-queue' at"),
        ({"tabel": "events"}, "hq has no option 'tabel'; did you mean 'table'?"),
        ({"columns": "event,colour"}, "there is no column 'colour'"),
        ({"table": "messages"}, "table 'messages' is read of one queue: say which in the option queue"),
        ({"partitions": "0"}, "partitions must be an integer of at least 1, not '0'"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(spark, server, options, sentence):
    with pytest.raises(Exception) as failed:  # noqa: PT011 - Spark has its own for each
        spark.read.format("hq").options(**{"url": server.url, **options}).load().collect()
    assert sentence in said_of(failed)


class Other(http.server.BaseHTTPRequestHandler):
    """A server that is no hq, or one of the future."""

    body = b"<html>"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_):
        """Tell nobody."""


@contextmanager
def answering(body: bytes):
    handler = type("Answering", (Other,), {"body": body})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{served.server_port}"
        finally:
            served.shutdown()
            thread.join()


def test_a_server_that_is_no_hq_or_a_newer_one_is_told_as_such(spark):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, events.SCHEMA.with_metadata({"hq_tables": "2"})):
        pass
    for body, sentence in (
        (b"<html>", "does not answer as hq does"),
        (sink.getvalue().to_pybytes(), "writes tables of version 2, newer than the 1 read here"),
    ):
        with answering(body) as url, pytest.raises(Exception) as failed:  # noqa: PT011 - Spark's own
            spark.read.format("hq").option("url", url).load()
        assert sentence in said_of(failed)


def test_a_file_of_a_newer_hq_is_told_as_such(spark, tmp_path):
    database = tmp_path / "hq.db"
    with hq.blocking.open(f"sqlite:///{database}"):
        pass
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()

    with pytest.raises(Exception) as failed:  # noqa: PT011 - Spark's own
        spark.read.format("hq").option("url", f"sqlite:///{database}").load()
    assert "has schema 9999, this hq reads 0003: install the hq that wrote it" in said_of(failed)


def test_a_range_that_is_pruned_fails_or_begins_later_if_that_is_wanted(spark, tmp_path):
    database = tmp_path / "hq.db"
    pruned = prune(database)
    frame = spark.read.format("hq").options(url=f"sqlite:///{database}")

    with pytest.raises(Exception) as failed:  # noqa: PT011 - Spark's own
        frame.option("from_position", 1).load().collect()
    assert f"positions 1 to {pruned} of the journal are no longer kept" in said_of(failed)

    rows = frame.options(from_position=1, fail_on_data_loss="false").load().collect()
    assert min(row.position for row in rows) == pruned + 1


def prune(database) -> int:
    """A journal whose beginning is gone: up to which position."""
    with hq.blocking.open(f"sqlite:///{database}") as system:
        queue = system.create_queue("emails")
        for number in range(6):
            queue.enqueue(number)
    with sqlite3.connect(database) as connection:
        connection.execute("DELETE FROM journal WHERE position <= 3")
    connection.close()
    return 3
