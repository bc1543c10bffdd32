"""One Spark and one server for all tests of a worker process; each test has queues of its own."""

from itertools import count

import pytest

from hq.pipeline import session
from tests.pipeline.serving import Served

_names = count(1)


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spark")
    made = session(
        "local[2,4]",
        settings={
            "spark.default.parallelism": "2",
            "spark.sql.shuffle.partitions": "2",
            "spark.local.dir": str(folder / "local"),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
        },
    )
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    served = Served(tmp_path_factory.mktemp("server") / "hq.db")
    yield served
    served.stop()


@pytest.fixture
def own_server(tmp_path):
    """A server of this test alone, to be killed."""
    served = Served(tmp_path / "hq.db")
    yield served
    served.stop()


@pytest.fixture
def queue(server):
    name = f"queue-{next(_names)}"
    server.create(name)
    return name


@pytest.fixture
def read(spark, server):
    """A table of the server as Spark reads it."""

    def frame(**options):
        return spark.read.format("hq").options(url=server.url, **options).load()

    return frame


@pytest.fixture
def read_from(spark):
    """The journal of a server as Spark reads it."""
    return lambda served: spark.read.format("hq").option("url", served.url).load()


@pytest.fixture
def write(spark, server, queue):
    """Rows to the test's queue."""

    def save(frame, **options):
        options = {"url": server.url, "queue": queue, **options}
        frame.write.format("hq").options(**options).mode("append").save()

    return save
