"""A client whose requests and answers can be lost on their way, and the queue it asks."""

import pytest

import hq
from hq.http.calls import Api, Terms
from hq.testing import FrozenClock, SeededChance
from tests.client.relay import relayed
from tests.http.ways import served


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
async def behind(clock):
    """The system that is served."""
    async with hq.open("memory:", clock=clock, chance=SeededChance()) as system:
        yield system


@pytest.fixture
async def there(behind):
    """The queue where it is."""
    return await behind.create_queue("emails")


@pytest.fixture
async def way(behind, there):
    """The relay that all requests take, and its address."""
    async with served("hypercorn", Api(behind.line, Terms())) as address, relayed(address) as way:
        yield way


@pytest.fixture
def relay(way):
    return way[0]


@pytest.fixture
async def queue(way, clock):
    """The queue as its client has it."""
    async with hq.open(way[1], clock=clock) as system:
        yield system.queue("emails")
