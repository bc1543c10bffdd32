"""Backends on a Postgres of their own schema, opened as often as wanted."""

import asyncpg
import pytest

from hq.backends.postgres import Limits, PostgresBackend, Shape, Term

# As the defaults, but short: a test waits for them.
PATIENT = Limits(deadline_s=10.0, connect_s=5.0)
SHORT = Term(time_s=1.0, margin_s=0.2)


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
async def opened(postgres_url, postgres_schema):
    """Opens the schema, as often as wanted; whatever is open at the end is closed."""
    backends = []

    async def open_it(*, term=SHORT, limits=PATIENT, **shape):
        backend = PostgresBackend(
            shape.pop("url", postgres_url),
            shape=Shape(schema=postgres_schema, **shape),
            term=term,
            limits=limits,
        )
        backends.append(backend)
        await backend.open()
        return backend

    yield open_it
    for backend in backends:
        await backend.close()


@pytest.fixture
async def admin(postgres_url, postgres_schema):
    """A connection beside hq's."""
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()


@pytest.fixture
def table(postgres_schema):
    return lambda name: f"{postgres_schema}.{name}"
