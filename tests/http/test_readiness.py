"""A server that cannot store says so, and says so no longer when it can."""

import resource
import sqlite3
from contextlib import closing, contextmanager

import httpx
import pytest

from tests.http.process import hq_serve
from tests.http.shapes import refused


@pytest.fixture
def database(tmp_path):
    return tmp_path / "hq.db"


@pytest.fixture
def server(database):
    """A real server, its process and a client, with a queue that is awake."""
    with (
        hq_serve("--database", str(database)) as (process, address),
        httpx.Client(base_url=address, timeout=30) as client,
    ):
        client.post("/queues?name=emails").raise_for_status()
        client.post("/queues/emails/enqueue", content=b"1").raise_for_status()
        yield process, client


@contextmanager
def no_room(process):
    """No byte of this process goes to any file, as on a disk that is full or has become read-only."""
    former = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, former[1]))
    yield
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, former)


def check_ready(client):
    """It says so, and it stores."""
    assert client.get("/readyz").json()["status"] == "ok"
    client.post("/queues/emails/enqueue", content=b"2").raise_for_status()


def test_a_server_is_not_ready_while_nothing_can_be_written(server):
    process, client = server
    with no_room(process):
        unready = client.get("/readyz")
        unsent = client.post("/queues/emails/enqueue", content=b"1")
        assert client.get("/healthz").json()["status"] == "ok"

    refused(unready, 503, "storage")
    refused(unsent, 503, "not_stored")
    check_ready(client)


@pytest.mark.slow
def test_a_server_is_not_ready_while_another_program_holds_its_file(server, database):
    _, client = server
    with closing(sqlite3.connect(database)) as another:
        another.execute("BEGIN IMMEDIATE")
        unready = client.get("/readyz")
        assert client.get("/healthz").json()["status"] == "ok"

    refused(unready, 503, "database_locked")
    check_ready(client)
