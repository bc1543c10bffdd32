"""A server that stops answers whoever waits for messages: with what is on its way, or with nothing."""

from functools import partial

import anyio
import httpx
import pytest

from hq.actors.node import Node
from hq.http.calls import Api
from hq.system.system import Opening, embedded
from hq.testing import SeededChance
from tests.actors.scripted import ScriptedBackend
from tests.http.ways import application

WAITS = {
    "receive": ("GET", "/queues/emails/receive?wait_ms=60000"),
    "poll": ("POST", "/queues/emails/poll?wait_ms=60000"),
    "prefix": ("POST", "/receive?prefix=&wait_ms=60000"),
}
NOTHING = {"receive": b"null", "poll": b'{"messages":[]}', "prefix": b'{"messages":[]}'}


@pytest.fixture
def backend():
    return ScriptedBackend()


@pytest.fixture
async def api(backend, clock, terms):
    async def open_backend():
        return backend

    async with Opening(embedded(open_backend, partial(Node, clock=clock, chance=SeededChance()))) as system:
        yield Api(system.line, terms)


@pytest.fixture(params=["express", "quart"])
async def client(request, api):
    app = await application(api, express=request.param == "express")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://hq") as client:
        await client.post("/queues?name=emails")
        yield client


@pytest.fixture
async def answers(client):
    """Begins every kind of wait, or one; the dictionary that their answers come into."""
    async with anyio.create_task_group() as tasks:
        came = {}

        async def begin(*kinds):
            async def request(kind):
                came[kind] = (await client.request(*WAITS[kind])).content

            for kind in kinds:
                tasks.start_soon(request, kind)
                await anyio.wait_all_tasks_blocked()
            return came

        yield begin
        tasks.cancel_scope.cancel()


async def test_who_waits_is_answered_with_nothing(api, answers):
    came = await answers(*WAITS)
    assert came == {}

    api.drain()
    await anyio.wait_all_tasks_blocked()

    assert came == NOTHING


async def test_no_wait_begins(api, answers):
    api.drain()
    assert await answers(*WAITS) == NOTHING


async def test_what_is_there_is_still_received(api, client):
    api.drain()
    for method, url in WAITS.values():
        await client.post("/queues/emails/enqueue", content=b"1")
        assert '"receives":1' in (await client.request(method, url)).text


@pytest.mark.parametrize("kind", WAITS)
async def test_a_message_on_its_way_to_its_receiver_arrives(api, client, backend, answers, kind):
    await client.post("/queues/emails/enqueue", content=b"1")
    backend.hold()
    came = await answers(kind)
    assert came == {}, "a message is handed out once that is stored"

    api.drain()
    await anyio.wait_all_tasks_blocked()
    backend.let_go()
    await anyio.wait_all_tasks_blocked()

    assert b'"receives":1' in came[kind]
