"""One server and one database for each module; each test has queues of its own."""

import asyncio
from itertools import count
from uuid import uuid4

import pytest

from tests.cli.running import PLACES, hq_at
from tests.conftest import execute, in_database

NUMBERS = count(1)


@pytest.fixture(scope="module", params=PLACES)
def hq(request, tmp_path_factory):
    """`hq`, talking to one kind of target."""
    with hq_at(request.param, tmp_path_factory.mktemp(request.param)) as running:
        yield running


@pytest.fixture
def name():
    """A name that no queue has."""
    return f"q{next(NUMBERS)}"


@pytest.fixture
def queue(hq, name):
    """The name of a queue that is there."""
    hq("queue", "add", name)
    return name


@pytest.fixture
def dead(hq, name):
    """The name of a queue with two dead letters, and their ids."""
    hq("queue", "add", name, "--max-attempts", "1")
    hq("message", "enqueue", name, "--file", "-", stdin="1\n2\n")
    ids = [one["id"] for one in hq.lines("message", "poll", name, "--batch", "2")]
    hq("message", "nack", name, "--ids", ",".join(ids))
    return name, ids


@pytest.fixture
def empty_postgres(postgres_server):
    """The URL of a database that has nothing."""
    name = f"hq_cli_{uuid4().hex[:12]}"
    asyncio.run(execute(postgres_server, f"CREATE DATABASE {name}"))
    yield in_database(postgres_server, name)
    asyncio.run(execute(postgres_server, f"DROP DATABASE {name} WITH (FORCE)"))
