"""Rows to messages: each once, whatever happens to tasks, replies and servers."""

import os
import socket
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark import TaskContext

from tests.pipeline.marks import spark_test

pytestmark = spark_test

ROWS = 4_000


@pytest.fixture
def rows(spark):
    return spark.range(0, ROWS, 1, 2).selectExpr("concat('{\"n\":', id, '}') AS payload", "id AS dedup_key")


def exactly(server, queue, count=ROWS):
    assert sorted(map(int, server.keys(queue))) == list(range(count))
    assert server.stats(queue)["enqueued"] == count


def test_what_is_written_is_read(spark, server, queue, write, read):
    frame = spark.sql(
        "SELECT encode('é', 'utf-8') AS payload, 'k' AS dedup_key, 'text/plain' AS content_type,"
        " map('a', 'b') AS headers, 7 AS priority, 'g' AS group, 60000L AS ttl_ms"
    )
    write(frame)
    [row] = read(table="messages", queue=queue).collect()

    assert (bytes(row.payload).decode(), row.content_type, row.headers) == ("é", "text/plain", {"a": "b"})
    assert (row.priority, row.group, row.dedup_key) == (7, "g", "k")
    assert (row.expires_at - row.enqueued_at).total_seconds() == 60


def test_rows_written_twice_are_messages_once(server, queue, write, rows):
    write(rows)
    write(rows)
    exactly(server, queue)


def test_a_key_is_remembered_for_a_week_after_its_message_is_completed(server, queue, write, rows):
    write(rows.limit(1))
    held = server.ask("GET", f"/queues/{queue}/receive")
    server.ask("PUT", f"/messages/{held['id']}/complete")
    write(rows.limit(1))
    assert server.stats(queue)["enqueued"] == 1


def test_a_key_can_be_another_column_or_made_of_the_row(spark, server, queue, write):
    frame = spark.sql("SELECT '{}' AS payload, id AS order_id FROM range(10)")
    write(frame, key_column="order_id")
    exactly(server, queue, 10)

    for _ in range(2):
        write(spark.sql("SELECT concat('[', id, ']') AS payload FROM range(5)"), key_from="hash")
    assert server.stats(queue)["enqueued"] == 15


def test_a_task_that_dies_in_the_middle_is_run_again_and_adds_the_rest(server, queue, write, rows, tmp_path):
    died = str(tmp_path / "died")

    def die_once(batches):
        for number, batch in enumerate(batches):
            yield batch
            if number == 2 and TaskContext.get().attemptNumber() == 0:
                Path(died).touch()
                os._exit(1)

    write(rows.mapInArrow(die_once, rows.schema))
    assert Path(died).exists()
    exactly(server, queue)


def test_a_job_that_fails_and_is_run_again_adds_the_rest(server, queue, write, rows):
    def fail(batches):
        for number, batch in enumerate(batches):
            if number == 2 and TaskContext.get().partitionId() == 1:
                raise ValueError("told to")
            yield batch

    with pytest.raises(Exception, match="told to"):
        write(rows.mapInArrow(fail, rows.schema))
    assert 0 < server.stats(queue)["enqueued"] < ROWS
    write(rows)
    exactly(server, queue)


@contextmanager
def losing_replies(port: int, lost: int):
    """A way to a server on which the first replies to messages are lost after the server has stored them."""
    left = [lost]
    listening = socket.create_server(("127.0.0.1", 0))
    closing = threading.Event()

    def carry(client):
        with client, socket.create_connection(("127.0.0.1", port)) as onward:
            while request := receive(client):
                onward.sendall(request)
                reply = receive(onward)
                if request.startswith(b"POST") and left[0] > 0:
                    left[0] -= 1
                    return
                client.sendall(reply)

    def accept():
        while not closing.is_set():
            client, _ = listening.accept()
            threading.Thread(target=carry, args=(client,), daemon=True).start()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", left
    finally:
        closing.set()
        socket.create_connection(listening.getsockname()).close()
        thread.join()
        listening.close()


def receive(connection) -> bytes:
    """One request or reply, whose length is in its head; nothing if there is none."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(65_536)
        if not part:
            return b""
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    lengths = [
        line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
    ]
    while len(body) < int((lengths or [b"0"])[0]):
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body


def test_a_reply_that_is_lost_after_the_server_stored_it_adds_nothing(server, queue, write, rows):
    with losing_replies(server.port, 3) as (url, left):
        write(rows, url=url)
    assert left == [0]
    exactly(server, queue)


def test_a_server_that_is_gone_and_comes_back_gets_every_row_once(own_server, write, rows):
    own_server.create("jobs")
    stored = []

    def restart():
        while not stored or stored[-1] == 0:
            stored.append(own_server.stats("jobs")["enqueued"])
        own_server.kill()
        own_server.start()

    restarting = threading.Thread(target=restart)
    restarting.start()
    write(rows, url=own_server.url, queue="jobs", batch_rows=50)
    restarting.join()

    assert 0 < stored[-1] < ROWS
    exactly(own_server, "jobs")


def test_a_server_that_stays_away_fails_the_job_in_one_sentence(own_server, write, rows):
    own_server.create("jobs")

    url = own_server.url
    own_server.kill()
    with pytest.raises(Exception, match="cannot be reached"):
        write(rows, url=url, queue="jobs", retry_ms=100)
    own_server.start()
    write(rows, url=own_server.url, queue="jobs")
    exactly(own_server, "jobs")


@pytest.mark.parametrize(
    ("statement", "options", "sentence"),
    [
        ("SELECT '1' AS payload", {}, "there is no column 'dedup_key'; name one in key_column"),
        ("SELECT '1' AS text, 'k' AS dedup_key", {}, "there is no column 'payload'"),
        ("SELECT '1' AS payload, 'k' AS dedup_key, 1 AS colour", {}, "a message has no 'colour'"),
        ("SELECT 1.5 AS payload, 'k' AS dedup_key", {}, "column 'payload' cannot be of type decimal(2,1)"),
        ("SELECT '1' AS payload, string(NULL) AS dedup_key", {}, "a row has no dedup_key"),
        ("SELECT string(NULL) AS payload, 'k' AS dedup_key", {}, "a row has no payload"),
        ("SELECT 'no json' AS payload, 'k' AS dedup_key", {}, "refuses the row of key 'k'"),
        ("SELECT '1' AS payload, 'k' AS dedup_key", {"queue": "no-such"}, "there is no queue 'no-such' at"),
        ("SELECT '1' AS payload, 'k' AS dedup_key", {"key_from": "x"}, "key_from must be hash, not 'x'"),
    ],
)
def test_rows_that_cannot_be_messages_are_told_in_one_sentence(
    spark, server, write, statement, options, sentence
):
    with pytest.raises(Exception) as failed:  # noqa: PT011 - Spark has its own for each
        write(spark.sql(statement), **options)
    assert sentence in str(failed.value)


def test_a_queue_is_not_overwritten(server, queue, rows):
    with pytest.raises(Exception, match="write with mode append"):
        rows.write.format("hq").options(url=server.url, queue=queue).mode("overwrite").save()
