"""The driver on a cluster: a read and a write, each of which kills the executor that does it, once."""

import os
import signal
import sys
from pathlib import Path

from pyspark import TaskContext

from hq.pipeline import session

ROWS = 6_000


def fatal(mark: str):
    """Kill the executor of the second task, once, when part of its rows is through; leave a mark of it."""

    def kill(batches):
        for batch in batches:
            yield batch
            context = TaskContext.get()
            if context.partitionId() == 1 and context.attemptNumber() == 0:
                status = Path(f"/proc/{os.getppid()}/stat").read_text()
                executor = int(status.rpartition(")")[2].split()[1])
                Path(mark).write_text(str(Path(f"/proc/{executor}/exe").readlink()))
                os.kill(executor, signal.SIGKILL)

    return kill


def main() -> None:
    master, url, folder = sys.argv[1:]
    spark = session(
        master,
        settings={
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.executor.memory": "512m",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
        },
    )
    spark.sparkContext.setLogLevel("OFF")
    events = spark.read.format("hq").options(url=url, queue="source", partitions=4).load()
    rows = events.where("event = 'enqueued'").selectExpr("payload", "message_id AS dedup_key")
    read = rows.mapInArrow(fatal(f"{folder}/read"), rows.schema)
    print("read", read.count(), read.select("dedup_key").distinct().count(), flush=True)
    written = spark.range(0, ROWS, 1, 4).selectExpr("string(id) AS payload", "id AS dedup_key")
    sink = (
        written.mapInArrow(fatal(f"{folder}/write"), written.schema)
        .write.format("hq")
        .options(url=url, queue="target")
    )
    sink.mode("append").save()
    where = spark.range(2).mapInArrow(python_home, "home string").collect()
    print("python", where[0].home, flush=True)
    spark.stop()


def python_home(_):
    """Where pyspark_hq came from on an executor."""
    import pyarrow as pa  # noqa: PLC0415 - on the executor

    import pyspark_hq  # noqa: PLC0415 - as above

    yield pa.RecordBatch.from_pydict({"home": [pyspark_hq.__file__]})


if __name__ == "__main__":
    main()
