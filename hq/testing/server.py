"""A real server in memory, on a port of its own, for the tests of whatever speaks HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio
import anyio.to_thread
from anyio.from_thread import start_blocking_portal

import hq.system.open
from hq.config import Server
from hq.http.app import create_app
from hq.http.calls import Api, Terms
from hq.http.engines import run_hypercorn
from hq.http.sockets import listen

SERVER = Server(port=0, grace_s=1.0)


@contextmanager
def server() -> Iterator[str]:
    """Its address. It runs in a thread of its own, by the time of day, and keeps nothing."""
    with (
        start_blocking_portal("asyncio", name="hq-server") as portal,
        portal.wrap_async_context_manager(_served()) as address,
    ):
        yield address


@asynccontextmanager
async def _served() -> AsyncIterator[str]:
    async with hq.system.open.open("memory:") as system:
        api = Api(system.line, Terms())
        app = await anyio.to_thread.run_sync(create_app, api)
        leaving = anyio.Event()

        async def stopped() -> None:
            await leaving.wait()
            api.drain()

        with listen(SERVER) as listening:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run_hypercorn, app, SERVER, listening, stopped)
                try:
                    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
                finally:
                    leaving.set()
