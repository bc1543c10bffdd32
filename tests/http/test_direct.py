"""The shortest way through uvicorn answers what the long way answers, byte for byte."""

import json
import re
from contextlib import asynccontextmanager

import anyio
import pytest

from hq import Settings
from hq.http.calls import Terms
from hq.http.direct import EXPRESS
from hq.http.door import Door
from tests.http.raw import connected, exchange, statuses
from tests.http.ways import application, opened, served

DATE = re.compile(rb"date: [^\r]*\r\n")
MOST = 1_000
QUEUE = "/queues/emails"
ONE = {"payload": {"to": "ada"}, "priority": 3}

CUTS = {
    "one piece": lambda head, body: [head + body],
    "in the head": lambda head, body: [head[: len(head) // 2], head[len(head) // 2 :] + body],
    "before the body": lambda head, body: [head, body],
    "in the body": lambda head, body: [head + body[:1], body[1:]],
}
WHOLE = "one piece"


def request(method, path, body=b"", *headers):
    """A plain request, its head and its body."""
    lines = [f"{method} {path} HTTP/1.1", "Host: hq", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode(), body


def post(path, value, *headers):
    return request("POST", f"{QUEUE}/{path}", json.dumps(value).encode(), *headers)


class Client:
    """One connection; requests go in pieces."""

    def __init__(self, connection, cut):
        self._connection = connection
        self._cut = CUTS[cut]
        self.asked = set()

    async def ask(self, head, body):
        """The answer, but for its date, and its content."""
        method, path = head.decode().split(" ")[:2]
        _, first, *_, last = path.partition("?")[0].split("/")
        self.asked.add((method, first, last))
        for piece in self._cut(head, body):
            await self._connection.send(piece)
            await anyio.wait_all_tasks_blocked()  # the pieces must not meet on the way
        answer = DATE.sub(b"", await self._connection.read_answer())
        return answer, json.loads(answer.partition(b"\r\n\r\n")[2])


@asynccontextmanager
async def reached(api, cut, app=None, **settings):
    await api.node.create("emails", Settings())
    async with (
        served("uvicorn", api, app, **settings) as address,
        connected(address) as connection,
    ):
        yield Client(connection, cut)


async def session(client):
    """Every hot route, when all is well and when it is not: the answers."""
    answers = []

    async def tell(asked):
        answer, value = await client.ask(*asked)
        answers.append(answer)
        return value

    def held(message, **said):
        return {"id": message["id"], "token": message["token"], **said}

    await tell(request("POST", f"{QUEUE}/enqueue", b"hello", "Content-Type: text/plain"))
    await tell(request("POST", f"{QUEUE}/enqueue?dedup_key=a&priority=2", b"{}"))
    await tell(post("messages", ONE))
    await tell(post("messages", [ONE] * 5 + [{"payload": 1, "priority": "high"}]))
    await tell(request("GET", f"{QUEUE}/receive"))
    messages = (await tell(request("POST", f"{QUEUE}/poll?batch=10")))["messages"]
    await tell(post("ack", held(messages[0])))
    await tell(post("ack", held(messages[0])))
    await tell(post("ack", [held(messages[1]), {"id": "none", "token": ""}]))
    await tell(post("nack", held(messages[2], error="later")))
    await tell(request("PUT", f"/messages/{messages[3]['id']}/complete"))
    await tell(request("PUT", f"/messages/{messages[4]['id']}/fail"))
    await tell(request("GET", f"{QUEUE}/receive"))
    await tell(request("GET", "/queues/none/receive"))
    await tell(request("GET", f"{QUEUE}/receive?lease_ms=soon"))
    await tell(post("messages", {"payload": 1}, "Content-Encoding: gzip"))
    await tell(post("messages", {"payload": 1}, "Origin: http://elsewhere.example"))
    await tell(request("POST", f"{QUEUE}/messages", b"{", "Content-Type: application/json"))
    return answers


class Watched(Door):
    """Notes what comes to the door."""

    def __init__(self, api, onward):
        super().__init__(api, onward)
        self.paths = []

    async def __call__(self, scope, receive, send):
        self.paths.append(scope["path"])
        await super().__call__(scope, receive, send)


@pytest.fixture
async def api(clock):
    async with opened(clock, Terms(max_body_bytes=MOST)) as opened_api:
        yield opened_api


@pytest.fixture
async def watched(api):
    return Watched(api, await application(api))


@pytest.mark.parametrize("cut", [cut for cut in CUTS if cut != WHOLE])
async def test_a_request_is_answered_alike_in_one_piece_and_in_several(clock, cut):
    answers = []
    for pieces in (WHOLE, cut):
        async with opened(clock, Terms(max_body_bytes=MOST)) as api, reached(api, pieces) as client:
            answers.append(await session(client))
            assert client.asked == set(EXPRESS), "every hot route is asked"
    assert answers[0] == answers[1]


async def test_what_is_hot_and_plain_does_not_come_to_the_door(api, watched):
    async with reached(api, WHOLE, watched) as client:
        await session(client)
    assert watched.paths == []


UNUSUAL = {
    "in pieces": ("in the body", post("messages", ONE), {}),
    "a wait for messages": (WHOLE, request("GET", f"{QUEUE}/receive?wait_ms=0"), {}),
    "another route": (WHOLE, request("GET", f"{QUEUE}/stats"), {}),
    "an encoded name": (WHOLE, request("GET", "/queues/e%6Dails/receive"), {}),
    "a header twice": (WHOLE, post("messages", ONE, "X: 1", "X: 2"), {}),
    "no host": (WHOLE, (b"GET /queues/emails/receive HTTP/1.1\r\n\r\n", b""), {}),
    "an older HTTP": (WHOLE, (b"GET /queues/emails/receive HTTP/1.0\r\nHost: hq\r\n\r\n", b""), {}),
    "a wish to be asked on": (WHOLE, post("messages", ONE, "Expect: something"), {}),
    "a wish for another protocol": (
        WHOLE,
        request("GET", f"{QUEUE}/receive", b"", "Upgrade: other", "Connection: upgrade"),
        {},
    ),
    "chunks": (
        WHOLE,
        (
            b"POST /queues/emails/messages HTTP/1.1\r\nHost: hq\r\nTransfer-Encoding: chunked\r\n\r\n",
            b'd\r\n{"payload":1}\r\n0\r\n\r\n',
        ),
        {},
    ),
    "more headers than are taken": (WHOLE, post("messages", ONE, *(f"X{n}: 1" for n in range(100))), {}),
    "a body beyond the limit": (WHOLE, request("POST", f"{QUEUE}/messages", b"x" * (MOST + 1)), {}),
    "more than a head may be": (
        WHOLE,
        post("messages", "x" * 900, f"X: {'x' * 900}"),
        {"max_header_bytes": 1_024},
    ),
    "more than a head may be, in pieces": (
        "in the head",
        post("messages", ONE, f"X: {'x' * 1_500}"),
        {"max_header_bytes": 1_024},
    ),
    "a log of requests": (WHOLE, post("messages", ONE), {"access_log": True}),
}


@pytest.mark.parametrize("name", UNUSUAL)
async def test_what_is_unusual_comes_to_the_door(api, watched, name):
    cut, asked, settings = UNUSUAL[name]
    async with reached(api, cut, watched, **settings) as client:
        await client.ask(*asked)
    assert len(watched.paths) == 1


async def test_a_request_that_is_behind_another_waits_for_it(api, watched):
    await api.node.create("emails", Settings())
    first, last = post("messages", ONE), post("messages", ONE, "Connection: close")
    async with served("uvicorn", api, watched) as address:
        received = await exchange(address, b"".join((*first, *first, *last, *first)))
    assert statuses(received) == [201, 201, 201]
    assert received.count(b"connection: close\r\n") == 1
    assert len(watched.paths) == 2, "all but the first"
