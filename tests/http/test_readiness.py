"""A server that cannot store says so, and says so no longer when it can."""

import sqlite3
from contextlib import closing

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


def check_ready(client):
    """It says so, and it stores."""
    assert client.get("/readyz").json()["status"] == "ok"
    client.post("/queues/emails/enqueue", content=b"2").raise_for_status()


@pytest.mark.slow
def test_a_server_is_not_ready_while_another_program_holds_its_file(server, database):
    _, client = server
    with closing(sqlite3.connect(database)) as another:
        another.execute("BEGIN IMMEDIATE")
        unready = client.get("/readyz")
        assert client.get("/healthz").json()["status"] == "ok"

    refused(unready, 503, "database_locked")
    check_ready(client)
