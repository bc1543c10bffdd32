"""A system to use, in each place it can be, with a clock that moves when told."""

import anyio
import pytest
from anyio.lowlevel import checkpoint

from hq.testing import FrozenClock
from tests.system.places import PLACES, system_at, url_at


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture(params=PLACES)
def place(request):
    return request.param


@pytest.fixture
def url(place, tmp_path):
    with url_at(place, tmp_path) as there:
        yield there


@pytest.fixture
async def system(place, tmp_path, clock):
    async with system_at(place, tmp_path, clock) as opened:
        yield opened


@pytest.fixture
async def queue(system):
    return await system.create_queue("emails")


@pytest.fixture
def until():
    """Let everyone else work until something is so; a minute is far more than it takes."""

    async def wait(condition):
        with anyio.fail_after(60):
            while not await condition():
                await checkpoint()

    return wait
