"""GET /events: server-sent events that a browser can resume, with a heartbeat, until the server stops."""

import anyio
import httpx
import msgspec
import pytest

import hq
from hq.http.calls import Api, Terms
from hq.http.handlers import events as handler
from hq.testing import SeededChance
from tests.http.shapes import refused
from tests.http.ways import served


@pytest.fixture
async def api(clock):
    async with hq.open("memory:", clock=clock, chance=SeededChance()) as system:
        yield Api(system.line, Terms())


@pytest.fixture(params=["hypercorn", "uvicorn"])
async def address(request, api):
    async with served(request.param, api) as there:
        yield there


@pytest.fixture
async def http(address):
    async with httpx.AsyncClient(base_url=address, timeout=10) as client:
        assert (await client.post("/queues", json={"name": "emails"})).status_code == 201
        yield client


async def block(lines):
    """The next event of a stream, field by field."""
    said = {}
    with anyio.fail_after(60):
        async for line in lines:
            if not line:
                return said
            name, _, value = line.partition(": ")
            said[name] = value
    return said


async def test_each_event_has_its_place_as_id_and_its_kind_as_name(http):
    async with http.stream("GET", "/queues/emails/events?kinds=enqueued") as response:
        assert response.headers["content-type"] == "text/event-stream"
        assert response.headers["cache-control"] == "no-store"
        lines = response.aiter_lines()
        assert set(await block(lines)) == {"id", ":"}
        accepted = (await http.post("/queues/emails/enqueue", content=b"1")).json()
        said = await block(lines)
    told = msgspec.json.decode(said["data"])
    assert (said["event"], said["id"]) == ("enqueued", told["cursor"])
    assert (told["message_id"], told["queue"]) == (accepted["id"], "emails")


async def test_a_browser_goes_on_after_the_last_it_had(http):
    await http.post("/queues/emails/messages", json=[{"payload": 1}, {"payload": 2}])
    async with http.stream("GET", "/events?after=0&kinds=enqueued") as response:
        lines = response.aiter_lines()
        await block(lines)
        first, second = await block(lines), await block(lines)
    headers = {"Last-Event-ID": first["id"]}
    async with http.stream("GET", "/events?after=0&kinds=enqueued", headers=headers) as response:
        lines = response.aiter_lines()
        await block(lines)
        assert await block(lines) == second


async def test_a_silent_stream_says_that_it_is_there_and_how_far_it_has_read(http, monkeypatch):
    monkeypatch.setattr(handler, "HEARTBEAT_S", 0.05)
    async with http.stream("GET", "/events?kinds=failed") as response:
        lines = response.aiter_lines()
        before = await block(lines)
        await http.post("/queues/emails/enqueue", content=b"1")
        after = await block(lines)
        while after["id"] == before["id"]:
            after = await block(lines)
    assert set(after) == {"id", ":"}


async def test_a_stream_ends_when_the_server_stops(http, api):
    async with http.stream("GET", "/events") as response:
        api.drain()
        with anyio.fail_after(60):
            assert [line async for line in response.aiter_lines()]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/events?after=x", 400, "invalid_input"),
        ("/events?kinds=born", 400, "invalid_input"),
        ("/events?queue=a&prefix=b", 400, "invalid_input"),
        ("/events?after=100", 400, "invalid_input"),
        ("/queues/nobody/events", 404, "queue_not_found"),
    ],
)
async def test_what_makes_no_sense_is_refused_before_it_begins(client, path, status, code):
    refused(await client.get(path), status, code)
