"""A client for each way to reach the API. The clock stands still until a test moves it."""

from inspect import isawaitable

import anyio
import pytest
from anyio.lowlevel import checkpoint

from hq.http.calls import Terms
from hq.testing import FrozenClock
from tests.http.ways import reached


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
def terms():
    return Terms()


@pytest.fixture
def limits():
    return None


@pytest.fixture
async def client(request, clock, terms, limits):
    """By both lanes; a test marked with `everywhere` is also run on each engine."""
    async with reached(getattr(request, "param", "lanes"), clock, terms, limits) as reaching:
        yield reaching


@pytest.fixture
async def emails(client):
    """The address of a queue with the settings every queue starts with."""
    response = await client.post("/queues", json={"name": "emails"})
    assert response.status_code == 201, response.text
    return "/queues/emails"


@pytest.fixture
def until():
    """Let everyone else work until something is so; a minute is far more than it takes."""

    async def wait(condition):
        with anyio.fail_after(60):
            while not (await said if isawaitable(said := condition()) else said):
                await checkpoint()

    return wait
