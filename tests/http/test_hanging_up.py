"""Clients that wait for messages and hang up: nothing of them stays, and no message goes with them."""

import asyncio
import gc
import json
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import httpx
import pytest
from anyio.lowlevel import checkpoint

import hq
from hq.actors.mailbox import Envelope
from hq.http.calls import Call
from tests.http.raw import connected
from tests.http.ways import application, opened, served

WAVES, WAVE = 20, 500
SOCKETS = 300
WAITS = [
    ("GET", "/queues/emails/receive", b"wait_ms=60000"),
    ("POST", "/queues/emails/poll", b"wait_ms=60000&batch=10"),
    ("POST", "/receive", b"prefix=emails&wait_ms=60000"),
]
STEPS = 60
NOISE = 50
"""What the interpreter, the loop or a library may keep of the last few requests."""


@pytest.fixture
async def api(clock, terms, limits):
    async with opened(clock, terms, limits) as opened_api:
        yield opened_api


@pytest.fixture
async def client(api):
    """Looks at the server, and enqueues, while others hang up."""
    transport = httpx.ASGITransport(await application(api))
    async with httpx.AsyncClient(transport=transport, base_url="http://hq") as client:
        await client.post("/queues?name=emails")
        yield client


class Poll:
    """A long poll by plain ASGI, whose client hangs up when it is told to."""

    def __init__(self, app, method, path, query):
        self.hung_up = asyncio.Event()
        self.answer = bytearray()
        self._request = [{"type": "http.request", "body": b"", "more_body": False}]
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path,
            "raw_path": path.encode(), "query_string": query, "headers": [(b"host", b"hq")], "scheme": "http",
            "root_path": "", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 9999), "extensions": {},
        }  # fmt: skip
        self.task = asyncio.ensure_future(app(scope, self._receive, self._send))

    async def _receive(self):
        if self._request:
            return self._request.pop()
        await self.hung_up.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message):
        self.answer += message.get("body", b"")


def waiting(api):
    return sum(count for _, count in api.line.node.waiting())


def kept():
    """What hq and the event loop hold, counted."""
    gc.collect()
    kinds = Counter(type(one) for one in gc.get_objects())
    objects = {kind.__name__: kinds[kind] for kind in (Envelope, Call, anyio.CancelScope, asyncio.Task)}
    return {**objects, "tasks": len(asyncio.all_tasks()), "files": len([*Path("/proc/self/fd").iterdir()])}


def check_first_receive(message):
    assert (message["payload"], message["attempts"], message["receives"]) == (1, 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("lane", ["express", "quart"])
@pytest.mark.parametrize("limits", [hq.Limits(waiters=WAVE + 1)])
async def test_ten_thousand_polls_that_are_given_up_leave_nothing(api, client, until, lane):
    app = await application(api, express=lane == "express")

    async def wave():
        polls = [Poll(app, *WAITS[number % len(WAITS)]) for number in range(WAVE)]
        await until(lambda: waiting(api) == 1 + WAVE)
        for poll in polls:
            poll.hung_up.set()
        await asyncio.gather(*(poll.task for poll in polls), return_exceptions=True)
        assert [poll.answer for poll in polls if poll.answer] == []
        assert waiting(api) == 1

    staying = Poll(app, *WAITS[0])
    await wave()
    before = kept()
    for _ in range(WAVES - 1):
        await wave()
    after = kept()

    assert {name: count for name, count in after.items() if count > before[name] + NOISE} == {}
    await client.post("/queues/emails/enqueue", content=b"1")
    await staying.task
    check_first_receive(json.loads(staying.answer))


@pytest.mark.parametrize("lane", ["express", "quart"])
@pytest.mark.parametrize("wait", WAITS)
async def test_a_message_that_meets_a_client_hanging_up_is_for_the_next(api, client, lane, wait):
    """At any moment before the answer leaves; no clock moves, so no lease ends by itself.

    An answer that has left and meets nobody is lost on the way, as on any network: its lease ends.
    """
    app = await application(api, express=lane == "express")
    for steps in range(STEPS):
        poll = Poll(app, *wait)
        await anyio.wait_all_tasks_blocked()
        enqueued = asyncio.ensure_future(client.post("/queues/emails/enqueue", content=b"1"))
        for _ in range(steps):
            await checkpoint()
        poll.hung_up.set()
        await asyncio.gather(enqueued, poll.task, return_exceptions=True)
        await anyio.wait_all_tasks_blocked()

        message = (await client.get("/queues/emails/receive")).json()
        if poll.answer:
            assert message is None
            return
        assert message is not None, f"after {steps} steps it is leased by nobody"
        assert message["attempts"] == 1
        await client.put(f"/messages/{message['id']}/complete")
    pytest.fail("no poll was ever answered")


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["hypercorn", "uvicorn"])
async def test_connections_that_break_leave_nothing(api, client, until, engine):
    async with served(engine, api) as address:

        async def wave():
            async with AsyncExitStack() as stack:
                connections = [await stack.enter_async_context(connected(address)) for _ in range(SOCKETS)]
                for number, connection in enumerate(connections):
                    method, path, query = WAITS[number % len(WAITS)]
                    target = f"{method} {path}?".encode() + query
                    await connection.send(target + b" HTTP/1.1\r\nHost: hq\r\n\r\n")
                await until(lambda: waiting(api) == SOCKETS)
                for connection in connections:
                    connection.abort()
            await until(lambda: waiting(api) == 0)

        await wave()
        await until(lambda: len(asyncio.all_tasks()) < SOCKETS)
        before = kept()
        await wave()
        await until(lambda: len(asyncio.all_tasks()) < SOCKETS)
        after = kept()

        assert {name: count for name, count in after.items() if count > before[name] + NOISE} == {}
        async with httpx.AsyncClient(base_url=address) as live, asyncio.TaskGroup() as tasks:
            receiving = tasks.create_task(live.get("/queues/emails/receive?wait_ms=60000"))
            await until(lambda: waiting(api) == 1)
            await client.post("/queues/emails/enqueue", content=b"1")
        check_first_receive(receiving.result().json())
