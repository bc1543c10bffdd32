"""The ways to reach the same API: both lanes in process, and each engine on a real port."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import anyio.to_thread
import httpx
import pytest
import uvicorn  # noqa: F401 - an engine imports it when it starts, which would block the loop under test

import hq
from hq.config import Server
from hq.http.app import create_app
from hq.http.calls import Api, Terms
from hq.http.door import Door
from hq.http.engines import ENGINES
from hq.http.express import Asgi
from hq.http.sockets import listen
from hq.testing import FrozenClock, SeededChance

# A connection's affairs are the engine's, and the time of day is not hq's to say.
NOT_OURS = {"connection", "date"}
# They say how long requests took, which differs.
UNLIKE = {"/metrics"}

everywhere = pytest.mark.parametrize("client", ["lanes", "hypercorn", "uvicorn"], indirect=True)


@asynccontextmanager
async def opened(clock: FrozenClock, terms: Terms, limits: hq.Limits | None = None) -> AsyncIterator[Api]:
    """The API of a store in memory; two of them with the same clock give the same ids and tokens."""
    async with hq.open("memory:", clock=clock, chance=SeededChance(), limits=limits) as system:
        yield Api(system.line, terms)


class Lanes(httpx.AsyncBaseTransport):
    """Sends every request by both lanes, each to a store of its own, and wants the same answer of both."""

    def __init__(self, express: Asgi, quart: Asgi) -> None:
        self._express = httpx.ASGITransport(express)
        self._quart = httpx.ASGITransport(quart)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        by_express, by_quart = await asyncio.gather(
            self._express.handle_async_request(request), self._quart.handle_async_request(request)
        )
        await by_express.aread()
        await by_quart.aread()
        assert by_express.status_code == by_quart.status_code, (by_express.content, by_quart.content)
        if request.url.path not in UNLIKE:
            assert by_express.content == by_quart.content
            assert ours(by_express) == ours(by_quart)
        return by_express


def ours(response: httpx.Response) -> list[tuple[str, str]]:
    """The headers that hq sets."""
    return sorted((name, value) for name, value in response.headers.multi_items() if name not in NOT_OURS)


async def application(api: Api, *, express: bool = True) -> Door:
    """The application, made in a thread: Quart looks at the disk once, which here would count as blocking."""
    return await anyio.to_thread.run_sync(partial(create_app, api, express=express))


@asynccontextmanager
async def served(engine: str, api: Api, app: Door | None = None, **settings) -> AsyncIterator[str]:
    """The application, or another one, on a port of its own; its address."""
    app = app or await application(api)
    server = Server(port=0, engine=engine, **{"grace_s": 2, **settings})
    listening = listen(server)
    port = listening.getsockname()[1]
    stop = asyncio.Event()

    async def stopped() -> None:
        await stop.wait()
        api.drain()

    running = asyncio.create_task(ENGINES[engine](app, server, listening, stopped))
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        stop.set()
        await running
        listening.close()


@asynccontextmanager
async def reached(
    way: str, clock: FrozenClock, terms: Terms, limits: hq.Limits | None
) -> AsyncIterator[httpx.AsyncClient]:
    """A client that reaches a new API in this way."""
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(opened(clock, terms, limits))
        if way == "lanes":
            other = await stack.enter_async_context(opened(clock, terms, limits))
            lanes = await application(api), await application(other, express=False)
            transport, address = Lanes(*lanes), "http://127.0.0.1:9999"
        else:
            transport, address = None, await stack.enter_async_context(served(way, api))
        yield await stack.enter_async_context(
            httpx.AsyncClient(base_url=address, transport=transport, timeout=10)
        )
