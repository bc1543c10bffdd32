"""Backends to put to the contract: each by its name, in an empty place."""

import pytest

from hq.backends.memory import MemoryBackend
from hq.backends.postgres import PostgresBackend
from hq.backends.postgres.opening import Shape
from hq.backends.sqlite import SqliteBackend


def memory(_request):
    return MemoryBackend()


def sqlite(request):
    return SqliteBackend(request.getfixturevalue("tmp_path") / "hq.db")


def postgres(request):
    shape = Shape(schema=request.getfixturevalue("postgres_schema"))
    return PostgresBackend(request.getfixturevalue("postgres_url"), shape=shape)


BACKENDS = {"memory": memory, "sqlite": sqlite, "postgres": postgres}


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(params=BACKENDS)
def closed_backend(request):
    return BACKENDS[request.param](request)


@pytest.fixture
async def backend(closed_backend):
    """A backend that holds nothing yet."""
    if not isinstance(closed_backend, MemoryBackend):
        await closed_backend.open()
    yield closed_backend
    await closed_backend.close()
