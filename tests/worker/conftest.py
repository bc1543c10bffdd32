"""A system on each backend, with a clock that moves when told, and a worker for it."""

import anyio
import pytest
from anyio.lowlevel import checkpoint

import hq
from hq.testing import FrozenClock, SeededChance

URLS = {"memory": "memory:", "sqlite": "sqlite:///{}/hq.db"}


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture(params=URLS)
def url(request, tmp_path):
    return URLS[request.param].format(tmp_path)


@pytest.fixture
async def system(url, clock):
    async with hq.open(url, clock=clock, chance=SeededChance()) as opened:
        yield opened


@pytest.fixture
async def queue(system):
    return await system.create_queue("emails", max_attempts=3)


@pytest.fixture
def worker():
    return hq.Worker(holder="tester", grace_ms=5_000)


@pytest.fixture
def until():
    """Let everyone else work until something is so; a minute is far more than it takes."""

    async def wait(condition):
        with anyio.fail_after(60):
            while not await condition():
                await checkpoint()

    return wait


@pytest.fixture
def counts(until):
    """Wait until the stats of a queue are these."""

    async def wait(queue, **expected):
        async def same():
            stats = await queue.stats()
            return all(getattr(stats, name) == count for name, count in expected.items())

        await until(same)

    return wait
