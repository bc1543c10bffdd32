"""For all tests: a call of hq that blocks the event loop fails, and there is a Postgres for those who ask."""

import asyncio
import fcntl
import os
import tempfile
from itertools import count
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest
from blockbuster import blockbuster_ctx

from tests.postgres.cluster import Cluster

HOME = "HQ_TEST_POSTGRES_HOME"
ELSEWHERE = "HQ_TEST_POSTGRES"


def pytest_configure(config):
    """One folder for one cluster, however many workers share it."""
    if not hasattr(config, "workerinput"):
        os.environ[HOME] = tempfile.mkdtemp(prefix="hq-postgres-")


def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        Cluster(Path(os.environ[HOME])).remove()


@pytest.fixture(autouse=True)
def blocking_calls_fail(request):
    if "anyio_backend" not in request.fixturenames:
        yield
        return
    with blockbuster_ctx("hq") as blockbuster:
        # asyncpg looks for passwords and certificates in files as it connects.
        for function in ("os.stat", "io.BufferedReader.read", "io.TextIOWrapper.read", "os.access"):
            if function in blockbuster.functions:
                blockbuster.functions[function].can_block_in("asyncpg/connect_utils.py", "_connect")
        yield


@pytest.fixture(scope="session")
def postgres_server():
    """The URL of a server that all workers share, with a place for the name of a database."""
    if os.environ.get(ELSEWHERE):
        return os.environ[ELSEWHERE]
    home = Path(os.environ[HOME])
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cluster = Cluster(home)
        if not cluster.folder.exists():
            cluster.make()
    return cluster.url()


@pytest.fixture(scope="session")
def postgres_url(postgres_server):
    """A database of this worker's own, dropped at its end."""
    name = f"hq_test_{uuid4().hex[:12]}"
    asyncio.run(execute(postgres_server, f"CREATE DATABASE {name}"))
    yield in_database(postgres_server, name)
    asyncio.run(execute(postgres_server, f"DROP DATABASE {name} WITH (FORCE)"))


NUMBERS = count(1)


@pytest.fixture
def postgres_schema():
    """The name of a schema that is not there yet."""
    return f"test_{next(NUMBERS)}"


async def execute(url, statement):
    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.close()


def in_database(url, name):
    """The same server's URL, for another database."""
    place, _, options = url.partition("?")
    server, _, _ = place.rpartition("/")
    return f"{server}/{name}?{options}"
