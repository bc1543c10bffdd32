"""A client of the dialect that a test module names, under its prefix and at the root of a port of its own."""

from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import anyio.to_thread
import httpx
import pytest

from hq.http.app import create_dialect_app
from hq.http.calls import Terms
from hq.http.dialects.table import BY_NAME
from hq.testing import FrozenClock
from tests.http.ways import Lanes, application, opened, served

WAYS = ("prefix", "root", "prefix on uvicorn", "root on hypercorn", "root on uvicorn")


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
def terms():
    return Terms()


@pytest.fixture(params=WAYS[:2])
def way(request):
    return request.param


@pytest.fixture
async def client(request, way, clock, terms):
    """By both lanes, which must answer alike; a test marked with `everywhere` is also run on each engine."""
    async with reached(request.module.DIALECT, getattr(request, "param", way), clock, terms) as reaching:
        yield reaching


async def dialect_application(api, dialect, *, express=True):
    """The dialect alone, made in a thread as tests.http.ways does."""
    return await anyio.to_thread.run_sync(partial(create_dialect_app, api, dialect, express=express))


@asynccontextmanager
async def reached(name, way, clock, terms):
    """A client of the dialect on a new store."""
    dialect = BY_NAME[name]
    place, _, engine = way.partition(" on ")
    make = application if place == "prefix" else partial(dialect_application, dialect=dialect)
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(opened(clock, terms))
        if engine:
            transport = None
            address = await stack.enter_async_context(served(engine, api, await make(api)))
        else:
            other = await stack.enter_async_context(opened(clock, terms))
            transport = Lanes(await make(api), await make(other, express=False))
            address = "http://127.0.0.1:9999"
        path = dialect.prefix if place == "prefix" else ""
        client = httpx.AsyncClient(base_url=address + path, transport=transport, timeout=10)
        yield await stack.enter_async_context(client)
