"""The journal as a stream: every event once, whoever is killed."""

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import hq
from tests.pipeline.marks import spark_test

pytestmark = spark_test

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def stream(spark, server, tmp_path):
    """Run a stream into Parquet files until it has all there is; what the files then hold."""

    def run(**options):
        options = {"url": server.url, **options}
        frame = spark.readStream.format("hq").options(**options).load()
        sink = frame.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        query = (
            sink.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        )
        query.awaitTermination()
        return [
            (row.position, row.sequence, row.event, row.payload)
            for row in spark.read.parquet(str(tmp_path / "out")).collect()
        ], [progress.numInputRows for progress in query.recentProgress]

    return run


def test_a_stream_goes_on_where_it_stopped_in_batches_of_bounded_size(server, queue, stream):
    for _ in range(6):
        server.enqueue(queue, range(100))
    found, batches = stream(queue=queue, max_rows_per_trigger=250)
    assert max(batches) <= 250
    enqueued = [row for row in found if row[2] == "enqueued"]
    assert (len(enqueued), len(set(enqueued))) == (600, 600)

    server.enqueue(queue, range(50))
    found, batches = stream(queue=queue, max_rows_per_trigger=250)
    assert (len(set(found)), len(found), sum(batches)) == (651, 651, 50)


def test_a_stream_starts_where_it_is_told_to(server, queue, stream, read):
    server.enqueue(queue, [1])
    server.enqueue(queue, [2])
    second = max(row.position for row in read(queue=queue, columns="position").collect())
    found, _ = stream(queue=queue, starting=second)
    assert [bytes(row[3]) for row in found] == [b"2"]


def test_a_stream_that_fell_behind_what_is_kept_fails_or_goes_on_if_that_is_wanted(stream, tmp_path):
    database, url = new_database(tmp_path, "hq.db")
    found, _ = stream(url=url)
    before = len(found)
    enqueue(database, 5)
    prune(database, before + 3)

    with pytest.raises(Exception, match="but the journal now begins at"):
        stream(url=url)
    found, _ = stream(url=url, fail_on_data_loss="false")
    assert len(found) == len(set(found))
    assert before < len(found) < before + 7


def test_a_checkpoint_of_another_store_fails(stream, tmp_path):
    _, url = new_database(tmp_path, "hq.db")
    stream(url=url)
    _, other = new_database(tmp_path, "other.db")
    with pytest.raises(Exception, match="this checkpoint belongs to another store"):
        stream(url=other)


def new_database(folder, name):
    database = folder / name
    with hq.blocking.open(f"sqlite:///{database}") as system:
        system.create_queue("emails")
    enqueue(database, 3)
    return database, f"sqlite:///{database}"


def enqueue(database, count):
    with hq.blocking.open(f"sqlite:///{database}") as system:
        for number in range(count):
            system.queue("emails").enqueue(number)


def prune(database, upto):
    connection = sqlite3.connect(database)
    with connection:
        connection.execute("DELETE FROM journal WHERE position <= ?", (upto,))
    connection.close()


# The process that is killed: reads a queue's events, and writes what was enqueued to another queue.
COPY = """
import sys
from hq.pipeline import session

url, folder = sys.argv[1:]
spark = session("local[2]")
spark.sparkContext.setLogLevel("OFF")
events = spark.readStream.format("hq").options(url=url, queue="source", max_rows_per_trigger=200).load()
rows = events.where("event = 'enqueued'").selectExpr("payload", "content_type", "message_id AS dedup_key")
sink = rows.writeStream.format("hq").options(url=url, queue="target", batch_rows=10)
query = sink.option("checkpointLocation", folder + "/checkpoint").trigger(availableNow=True).start()
query.awaitTermination()
spark.stop()
"""


def test_a_copy_killed_with_its_jvm_in_the_middle_and_run_again_has_every_message_once(own_server, tmp_path):
    own_server.create("source")
    own_server.create("target")
    for _ in range(12):
        own_server.enqueue("source", range(100))
    command = [sys.executable, "-c", COPY, own_server.url, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True) as killed:
        while own_server.stats("target")["enqueued"] < 100:
            assert killed.poll() is None
        # Driver, JVM and Python workers at once.
        os.killpg(killed.pid, signal.SIGKILL)
    before = own_server.stats("target")["enqueued"]
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)

    assert again.returncode == 0, again.stderr
    assert 0 < before < 1_200
    assert own_server.stats("target")["enqueued"] == 1_200
    assert sorted(own_server.keys("target")) == sorted(one["id"] for one in messages(own_server, "source"))


def messages(server, queue):
    page = server.ask("GET", f"/queues/{queue}/messages?limit=1000")
    found = page["messages"]
    while "next" in page:
        page = server.ask("GET", f"/queues/{queue}/messages?limit=1000&after={page['next']}")
        found += page["messages"]
    return found
