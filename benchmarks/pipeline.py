"""What Spark gets out of hq and puts in: the journal read over HTTP, and rows written to a queue.

A server holds a journal of a million events: enqueued, received and completed, in appends of a thousand.
Spark reads all columns of it and throws them away, in turns with the same reader on Arrow files, with
Parquet, and with a loop in Python over the lines of the same server. Then it writes, in turns with a client
that sends ten messages at a time. Starting Spark and a first round of everything are not counted.

Then the lake: the journal is archived in turns with the same reader and Parquet alone; a tenth of the
events and all of them are built and reported on; and a file of lines is loaded, against the same client.

    python -P benchmarks/pipeline.py --events 1000000 --rows 200000 --runs 3
    python -P benchmarks/pipeline.py --quick
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from time import perf_counter
from urllib.parse import urlsplit

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

import hq
from hq.pipeline import session
from hq.pipeline.archive import archive, by_spark
from hq.pipeline.build import build
from hq.pipeline.files import LocalFiles
from hq.pipeline.lake import Lake
from hq.pipeline.load import Loading, load
from hq.pipeline.page import page
from hq.pipeline.report import Objective
from hq.pipeline.report import report as report_on
from hq.pipeline.store import Place
from pyspark_hq.options import Options
from pyspark_hq.server import ServerStore
from pyspark_hq.stores import Span
from pyspark_hq.streams import split

APPEND = 1_000
PARTITIONS = 8
SMALL_BATCH = 10
PAYLOAD = "x" * 100


class FileSource(DataSource):
    """The reader that hq's is measured against: batches of Arrow files, as they are."""

    @classmethod
    def name(cls) -> str:
        return "arrow_files"

    def schema(self) -> StructType:
        first = next(Path(self.options["folder"]).glob("*.arrow"))
        with pa.ipc.open_stream(first) as stream:
            return from_arrow_schema(stream.schema, prefer_timestamp_ntz=False)

    def reader(self, schema: StructType) -> DataSourceReader:
        return FileReader(self.options["folder"], schema)


class FileReader(DataSourceReader):
    """A partition for each file."""

    def __init__(self, folder: str, schema: StructType) -> None:
        self._folder = folder
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(str(path)) for path in sorted(Path(self._folder).glob("*.arrow"))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        target = to_arrow_schema(self._schema, timezone="UTC")
        with pa.ipc.open_stream(partition.value) as stream:
            for batch in stream:
                yield batch.cast(target)


async def fill(database: Path, events: int) -> None:
    """A journal of so many events, most of them of messages that are completed."""
    async with hq.open(f"sqlite:///{database}") as system:
        queue = await system.create_queue("emails")
        await system.create_queue("written")
        for start in range(0, events // 3, APPEND):
            wanted = min(APPEND, events // 3 - start)
            await queue.enqueue_many(
                [
                    hq.Outgoing({"n": start + n, "text": PAYLOAD}, dedup_key=f"k{start + n}")
                    for n in range(wanted)
                ]
            )
            await queue.complete(await queue.receive(limit=wanted))


@contextmanager
def served(database: Path) -> Iterator[str]:
    """A server of this file in a process of its own; its address."""
    command = [sys.executable, "-m", "hq", "serve", "--port", "0", "--database", str(database)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        try:
            yield re.findall(r"http://\S+", server.stdout.readline())[0]
        finally:
            server.terminate()


def copy_out(address: str, folder: Path) -> int:
    """The journal as Arrow files; how many events it has."""
    store = ServerStore(Options(url=address), 0)
    schema = store.schema("events", None)
    rows = 0
    for number, part in enumerate(split(Span(0, store.bounds().last), PARTITIONS)):
        with pa.ipc.new_stream(folder / f"{number}.arrow", schema) as written:
            for batch in store.events(Span(part.after, part.upto), None, schema.names):
                written.write_batch(batch)
                rows += batch.num_rows
    return rows


def loop_over_lines(address: str, last: int) -> None:
    """Every event as a Python object, by the lines of the journal."""
    where = urlsplit(address)
    connection = HTTPConnection(where.hostname or "", where.port)
    after, reached = -1, 0
    while reached != after:
        after = reached
        connection.request("GET", f"/journal?after={after}&upto={last}&limit=10000")
        response = connection.getresponse()
        for line in response.read().splitlines():
            json.loads(line)
        reached = int(response.headers["hq-reached"])


def loop_of_small_batches(address: str, messages: int, name: str) -> None:
    """A client that sends ten messages at a time."""
    where = urlsplit(address)
    connection = HTTPConnection(where.hostname or "", where.port)
    for start in range(0, messages, SMALL_BATCH):
        batch = [
            {"payload": {"n": n, "text": PAYLOAD}, "dedup_key": f"{name}-{n}"}
            for n in range(start, start + SMALL_BATCH)
        ]
        connection.request(
            "POST", "/queues/written/messages", json.dumps(batch), {"Content-Type": "application/json"}
        )
        assert connection.getresponse().read()


def noop(frame: DataFrame) -> None:
    """Read everything, keep nothing."""
    frame.write.format("noop").mode("overwrite").save()


def timed(work: Callable[[], None]) -> float:
    """Seconds it takes."""
    begun = perf_counter()
    work()
    return perf_counter() - begun


def measure(spark: SparkSession, address: str, folder: Path, arguments: argparse.Namespace) -> None:
    """All of it, in turns."""
    spark.dataSource.register(FileSource)
    (folder / "arrow").mkdir()
    events = copy_out(address, folder / "arrow")
    last = ServerStore(Options(url=address), 0).bounds().last
    files = spark.read.format("arrow_files").option("folder", str(folder / "arrow")).load()
    files.write.parquet(str(folder / "parquet"))
    small = arguments.rows // 20 // SMALL_BATCH * SMALL_BATCH

    # What is written meanwhile is not read: every turn reads the same events.
    def journal(upto: int) -> DataFrame:
        return spark.read.format("hq").options(url=address, partitions=PARTITIONS, to_position=upto).load()

    assert journal(last).count() == events

    def rows(name: str) -> DataFrame:
        return spark.range(0, arguments.rows, 1, 4).selectExpr(
            f'concat(\'{{"n":\', id, \',"text":"{PAYLOAD}"}}\') AS payload',
            f"concat('{name}-', id) AS dedup_key",
        )

    turn = 0

    def write() -> None:
        sink = rows(f"spark-{turn}").write.format("hq").option("url", address).option("queue", "written")
        sink.mode("append").save()

    turns: dict[str, tuple[int, Callable[[], None]]] = {
        "read over HTTP": (events, lambda: noop(journal(last))),
        "a quarter of it": (events // 4, lambda: noop(journal(last // 4))),
        "the same from Arrow files": (events, lambda: noop(files)),
        "Parquet": (events, lambda: noop(spark.read.parquet(str(folder / "parquet")))),
        "loop over lines": (events, lambda: loop_over_lines(address, last)),
        "write": (arguments.rows, write),
        "loop of batches of ten": (small, lambda: loop_of_small_batches(address, small, f"loop-{turn}")),
    }
    noop(journal(last // 10))
    noop(files)
    taken: dict[str, list[float]] = {name: [] for name in turns}
    for turn in range(arguments.runs):  # noqa: B007 - each turn writes messages of its own
        for name, (_, work) in turns.items():
            taken[name].append(timed(work))
    report(turns, taken)


def measure_lake(spark: SparkSession, address: str, folder: Path, arguments: argparse.Namespace) -> None:
    """Archive, build and report, load."""
    place = Place(address)
    with place.opened() as store:
        last, tenth = store.bounds().last, store.reach(0, arguments.events // 10)

    def lake(name: str) -> Lake:
        return Lake(LocalFiles(folder / name))

    def bare(turn: int) -> None:
        frame = spark.read.format("hq").options(url=address, partitions=PARTITIONS, to_position=last).load()
        frame.write.option("compression", "zstd").parquet(str(folder / f"bare-{turn}"))

    # Also the first round of everything, which is not counted.
    _copy_part(lake("lake-tenth"), tenth, place, spark)
    taken: dict[str, list[float]] = {"archive": [], "read and write alone": []}
    archive(lake(f"lake-{arguments.runs}"), place, by_spark(spark, place))
    for turn in range(arguments.runs):
        here = lake(f"lake-{turn}")
        taken["archive"].append(timed(lambda to=here: archive(to, place, by_spark(spark, place))))
        taken["read and write alone"].append(timed(lambda number=turn: bare(number)))
    for name, seconds in taken.items():
        print(f"    {name:<28}" + " ".join(f"{one:.2f} s" for one in seconds))
    ratio = median(taken["read and write alone"]) / median(taken["archive"])
    print(f"    {'archive against both alone':<34}{ratio:6.2f} x  (aim 0.7 x)", flush=True)
    whole, small = lake("lake-0"), lake("lake-tenth")
    spent = {}
    for name, one in (("a first one", lake(f"lake-{arguments.runs}")), ("a tenth", small), ("all", whole)):
        spent[name] = timed(lambda to=one: build(spark, to))
        spent[name] += timed(lambda to=one: page(report_on(spark, to, Objective())))
        print(f"    build and report, {name:<16}{spent[name]:8.2f} s")
    longer = spent["all"] / spent["a tenth"]
    print(f"    {'ten times the events, in time':<34}{longer:6.2f} x  (aim at most 10 x)")
    _measure_load(spark, place, folder, arguments)


def _copy_part(small: Lake, upto: int, place: Place, spark: SparkSession) -> None:
    """A lake of the first events alone."""
    with place.opened() as store, small.held(store.bounds().incarnation) as manifest:
        span = Span(0, upto)
        rows = store.count(span)
        staged = small.stage(
            "events", f"{0:019d}-{upto:019d}", lambda folder: by_spark(spark, place)(span, rows, folder)
        )
        small.publish(manifest.following({"events": small.enter(staged)}, archived=upto))


def _measure_load(spark: SparkSession, place: Place, folder: Path, arguments: argparse.Namespace) -> None:
    file = folder / "rows.ndjson"
    with file.open("w") as written:
        for n in range(arguments.rows):
            written.write(json.dumps({"n": n, "text": PAYLOAD}) + "\n")
    small = arguments.rows // 20 // SMALL_BATCH * SMALL_BATCH
    loop = small / timed(lambda: loop_of_small_batches(place.url, small, f"against-{small}"))
    loaded = arguments.rows / timed(lambda: load(spark, place, [str(file)], Loading("written")))
    print(
        f"    load {arguments.rows:,} lines: {loaded:,.0f} rows/s; loop of batches of ten: {loop:,.0f} rows/s"
    )
    print(f"    {'load against batches of ten':<34}{loaded / loop:6.2f} x  (aim 5 x)", flush=True)


def report(turns: dict[str, tuple[int, Callable[[], None]]], taken: dict[str, list[float]]) -> None:
    """Figures and ratios."""
    rate = {name: count / median(taken[name]) for name, (count, _) in turns.items()}
    for name, (count, _) in turns.items():
        print(f"    {name:<28}{count:>10,} rows {rate[name]:>12,.0f} rows/s", end="   ")
        print(" ".join(f"{seconds:.2f} s" for seconds in taken[name]))
    for text, ratio, aim in (
        ("read against Arrow files", rate["read over HTTP"] / rate["the same from Arrow files"], "0.4 x"),
        ("read against a loop over lines", rate["read over HTTP"] / rate["loop over lines"], "1.5 x"),
        ("read against Parquet", rate["read over HTTP"] / rate["Parquet"], ""),
        ("write against batches of ten", rate["write"] / rate["loop of batches of ten"], "5 x"),
        (
            "four times the rows, in time",
            median(taken["read over HTTP"]) / median(taken["a quarter of it"]),
            "at most 4.4 x",
        ),
    ):
        print(f"    {text:<34}{ratio:6.2f} x" + (f"  (aim {aim})" if aim else ""), flush=True)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--lake-only", action="store_true", help="leave out reading and writing")
    parser.add_argument("--quick", action="store_true", help="one run of each, of a fifth of the rows")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.events, arguments.rows, arguments.runs = 200_000, 40_000, 1
    with tempfile.TemporaryDirectory(prefix="hq-bench-") as name:
        folder = Path(name)
        asyncio.run(fill(folder / "hq.db", arguments.events))
        spark = session("local[2]", settings={"spark.driver.memory": "2g"})
        spark.sparkContext.setLogLevel("OFF")
        with served(folder / "hq.db") as address:
            print("spark", flush=True)
            if not arguments.lake_only:
                measure(spark, address, folder, arguments)
            print("lake", flush=True)
            measure_lake(spark, address, folder, arguments)
        spark.stop()


if __name__ == "__main__":
    main()
