"""Bytes made to hurt a server (X-6, X-8), to both engines; then a plain request must be answered."""

import anyio
import httpx
import pytest

from hq.http.calls import Terms
from tests.http.raw import connected, exchange, statuses
from tests.http.shapes import refused
from tests.http.ways import opened, served

MOST = 1_000
HOST = b"Host: 127.0.0.1\r\n"
CLOSE = b"Connection: close\r\n"
ONE = b"Content-Length: 1\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
SMUGGLED = b"POST /queues/emails/enqueue HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\ns"
NO_BODY = b"0\r\n\r\n"


def post(head=ONE, body=b"x", *, path=b"/queues/emails/enqueue", method=b"POST", fixed=HOST + CLOSE):
    """A request that enqueues a message, unless something is wrong with it."""
    return method + b" " + path + b" HTTP/1.1\r\n" + fixed + head + b"\r\n" + body


def get(path=b"/queues", head=b"", **options):
    return post(head, b"", path=path, **{"method": b"GET", **options})


REFUSED = {
    "a head of more than 16 KiB": post(b"X: " + b"a" * (16 << 10) + b"\r\n" + ONE),
    "a head of 64 KiB": post(b"X: " + b"a" * (64 << 10) + b"\r\n" + ONE),
    "a head of 10 MB": post(b"X: " + b"a" * 10_000_000 + b"\r\n" + ONE),
    "a head without end": b"GET / HTTP/1.1\r\n" + b"X: " + b"a" * 2_000_000,
    "a path of 20 KB": post(path=b"/queues/" + b"a" * 20_000 + b"/enqueue"),
    "a query of 20 KB": get(b"/queues?after=" + b"a" * 20_000),
    "a method of 20 KB": get(method=b"A" * 20_000),
    "ten thousand headers": post(b"".join(b"X%d: 1\r\n" % n for n in range(10_000)) + ONE),
    "a CR in a value": post(b"X: a\rb\r\n" + ONE),
    "an LF in a value": post(b"X: a\nb\r\n" + ONE),
    "a NUL in a value": post(b"X: a\x00b\r\n" + ONE),
    "a NUL in a name": post(b"X\x00: a\r\n" + ONE),
    "a bare CR for a line end": post(b"X: 1\r" + ONE),
    "white space before the colon": post(b"Content-Length : 1\r\n"),
    "white space in a name": post(b"X Y: 1\r\n" + ONE),
    "an empty name": post(b": 1\r\n" + ONE),
    "no colon": post(b"nonsense\r\n" + ONE),
    "two hosts": post(b"Host: other\r\n" + ONE),
    "no host": post(fixed=CLOSE),
    "two lengths": post(b"Content-Length: 1\r\nContent-Length: 2\r\n"),
    "two lengths in one": post(b"Content-Length: 1, 2\r\n"),
    "a length with a sign": post(b"Content-Length: +1\r\n"),
    "a negative length": post(b"Content-Length: -1\r\n"),
    "a hexadecimal length": post(b"Content-Length: 0x1\r\n"),
    "a length with a low line": post(b"Content-Length: 1_0\r\n"),
    "a length in other digits": post(b"Content-Length: \xd9\xa1\r\n"),
    "an empty length": post(b"Content-Length: \r\n"),
    "a length of thirty digits": post(b"Content-Length: 1" + b"0" * 30 + b"\r\n"),
    "a length and chunks": post(b"Content-Length: 4\r\n" + CHUNKED, NO_BODY + SMUGGLED, fixed=HOST),
    "chunks and a length": post(CHUNKED + b"Content-Length: 6\r\n", NO_BODY + SMUGGLED, fixed=HOST),
    "a length and chunks, elsewhere": post(
        b"Content-Length: 4\r\n" + CHUNKED, NO_BODY + SMUGGLED, fixed=HOST, path=b"/queues?name=q"
    ),
    "two transfer encodings": post(
        CHUNKED + b"Transfer-Encoding: identity\r\n", NO_BODY + SMUGGLED, fixed=HOST
    ),
    "chunked, and then something": post(
        b"Transfer-Encoding: chunked, identity\r\n", NO_BODY + SMUGGLED, fixed=HOST
    ),
    "an unknown transfer encoding": post(b"Transfer-Encoding: xchunked\r\n", NO_BODY + SMUGGLED, fixed=HOST),
    "a compressed transfer": post(b"Transfer-Encoding: gzip\r\n", NO_BODY + SMUGGLED, fixed=HOST),
    "white space before the colon of chunks": post(
        b"Transfer-Encoding : chunked\r\n", NO_BODY + SMUGGLED, fixed=HOST
    ),
    "a vertical tab before chunked": post(
        b"Transfer-Encoding: \x0bchunked\r\n", NO_BODY + SMUGGLED, fixed=HOST
    ),
    "a negative chunk": post(CHUNKED, b"-1\r\nx\r\n" + NO_BODY),
    "a chunk without a number": post(CHUNKED, b"zz\r\nx\r\n" + NO_BODY),
    "a chunk longer than it says": post(CHUNKED, b"1\r\nxyz\r\n" + NO_BODY),
    "a line end in a chunk's extension": post(CHUNKED, b"1;a\nb\r\nx\r\n" + NO_BODY),
    "CONNECT to an address": get(b"example.com:443", method=b"CONNECT"),
    "CONNECT to a path": post(method=b"CONNECT"),
    "a path without its slash": post(path=b"queues/emails/enqueue"),
    "a path with something before its slash": post(path=b"x/queues/emails/enqueue"),
    "no path": get(b"?after=a"),
    "an asterisk": get(b"*", method=b"OPTIONS"),
    "a tab for a space": post().replace(b"POST /", b"POST\t/"),
    "a NUL for a method": get(method=b"\x00"),
    "no method": get(method=b""),
    "an unknown method": get(method=b"BREW"),
    "TRACE": get(method=b"TRACE"),
    "letters that are no ASCII in a path": get("/queues/é".encode()),
    "line ends in a path": get(b"/queues/a\r\nX: 1"),
    "every byte there is": bytes(range(256)) * 4,
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 100,
}
"""Nothing of it is served: one refusal, or none at all, and the connection is closed."""

AS_IT_READS = {
    "a value in two lines": post(b"X: a\r\n b\r\n" + ONE),
    "the same length twice": post(ONE + ONE),
    "LF for all line ends": post().replace(b"\r\n", b"\n"),
    "LF for one line end": post(b"X: 1\n" + ONE),
    "empty lines before": b"\r\n\r\n" + post(),
    "two spaces": post(path=b" /queues/emails/enqueue"),
    "a small method": post(method=b"post"),
    "another version": post().replace(b"HTTP/1.1", b"HTTP/9.9"),
    "chunked in a list": post(b"Transfer-Encoding: identity, chunked\r\n", b"1\r\nx\r\n" + NO_BODY),
    "a slash that is no boundary": post(path=b"/queues/emails%2Fenqueue"),
    "a NUL in a path": post(path=b"/queues/emails%00/enqueue"),
    "no UTF-8 in a path": post(path=b"/queues/%ff/enqueue"),
    "a percent sign": post(path=b"/queues/%zz/enqueue"),
    "dots in a path": post(path=b"/queues/../queues/emails/enqueue"),
}
"""Refused or served, as the engine sees fit: but never more than the one request it is."""

SERVED = {
    "an absolute address": (post(path=b"http://127.0.0.1/queues/emails/enqueue"), [200], 1),
    "an address of someone else": (post(path=b"http://a.example/queues/emails/enqueue"), [200], 1),
    "two in a row": (post(fixed=HOST) + post(), [200, 200], 2),
    "two in a row to either lane": (get(fixed=HOST) + post(fixed=HOST) + get(), [200, 200, 200], 1),
    "chunks": (post(CHUNKED, b"1\r\nx\r\n2\r\nyz\r\n" + NO_BODY), [200], 1),
    "chunks with extensions and trailers": (post(CHUNKED, b"1;a=b\r\nx\r\n0\r\nX: 1\r\n\r\n"), [200], 1),
    "one that waits to be asked on": (post(b"Expect: 100-continue\r\n" + ONE), [100, 200], 1),
    "a body where none is wanted": (get(b"/queues/emails/receive", ONE) + b"x", [200], 0),
    "a wish for another protocol": (
        get(head=b"Upgrade: foo\r\n", fixed=HOST + b"Connection: close, Upgrade\r\n"),
        [200],
        0,
    ),
}


class Target:
    """A server to hurt, and a client to see how it is."""

    def __init__(self, address, client):
        self.address = address
        self.client = client

    async def enqueued(self):
        """How many messages came through so far; the answer shows that the server is well."""
        response = await self.client.get("/queues/emails/stats")
        assert response.status_code == 200
        return response.json()["enqueued"]


@pytest.fixture(params=["hypercorn", "uvicorn"])
def engine(request):
    return request.param


@pytest.fixture
async def api(clock):
    async with opened(clock, Terms(max_body_bytes=MOST, read_timeout_s=0.4)) as opened_api:
        yield opened_api


@pytest.fixture
async def target(engine, api):
    new_connection = httpx.Limits(max_keepalive_connections=0)
    async with (
        served(engine, api, keep_alive_s=0.5, read_timeout_s=0.5) as address,
        httpx.AsyncClient(base_url=address, limits=new_connection) as client,
    ):
        await client.post("/queues?name=emails")
        yield Target(address, client)


async def test_what_is_no_request_is_refused(target):
    served_anyway = {}
    for name, data in REFUSED.items():
        before = await target.enqueued()
        found = statuses(await exchange(target.address, data))
        came_through = await target.enqueued() - before
        if came_through or len(found) > 1 or any(not 400 <= one < 500 and one != 501 for one in found):
            served_anyway[name] = found, came_through
    assert served_anyway == {}


async def test_what_can_be_read_in_two_ways_is_one_request_at_most(target):
    for name, data in AS_IT_READS.items():
        before = await target.enqueued()
        found = statuses(await exchange(target.address, data))
        assert len(found) <= 1, name
        assert all(one < 500 or one == 501 for one in found), name
        assert await target.enqueued() - before == (found == [200]), name


@pytest.mark.parametrize("name", SERVED)
async def test_what_is_unusual_is_served(target, name):
    data, expected, came_through = SERVED[name]
    before = await target.enqueued()
    assert statuses(await exchange(target.address, data)) == expected
    assert await target.enqueued() - before == came_through


async def test_a_body_may_be_as_long_as_the_limit_and_no_longer(target):
    for path in ("/queues/emails/enqueue", "/queues/emails/release"):
        for size in (0, MOST, MOST + 1):
            response = await target.client.post(path, content=b"x" * size)
            assert (response.status_code == 413) is (size > MOST)
    refused(response, 413, "body_too_large")


@pytest.mark.parametrize("path", [b"/queues/emails/enqueue", b"/queues/emails/release"])
@pytest.mark.parametrize(
    ("head", "body", "status"),
    [
        pytest.param(b"Content-Length: 1000000000000\r\n", b"x", 413, id="a length beyond the limit"),
        pytest.param(b"Content-Length: 100\r\n", b"x", 408, id="shorter than it says"),
        pytest.param(
            CHUNKED, b"7d1\r\n" + b"x" * 2_001 + b"\r\n0\r\n\r\n", 413, id="one chunk beyond the limit"
        ),
        pytest.param(CHUNKED, b"5\r\n12345\r\n" * 2_000, 413, id="chunks without end"),
        pytest.param(CHUNKED, b"FFFFFFFFFFFFFFF\r\nx", 408, id="a chunk that never comes"),
        pytest.param(CHUNKED, b"5\r\n12345\r\n", 408, id="no last chunk"),
    ],
)
async def test_a_body_that_lies_is_given_up(target, path, head, body, status):
    received = await exchange(target.address, post(head, body, path=path, fixed=HOST))
    assert statuses(received) == [status]
    assert b"application/problem+json" in received
    assert await target.enqueued() == 0


async def test_more_than_the_body_is_no_part_of_it(target):
    received = await exchange(target.address, post(ONE, b"x12345\r\n\r\n", fixed=HOST))
    assert all(status in {200, 400} for status in statuses(received))
    assert await target.enqueued() == 1
    assert (await target.client.get("/queues/emails/receive")).json()["payload_base64"] == "eA=="


async def test_half_a_body_is_no_message(target):
    async with connected(target.address) as connection:
        await connection.send(post(b"Content-Length: 10\r\n", b"12345"))
        connection.half_close()
        received = await connection.read()
    assert 200 not in statuses(received)
    assert await target.enqueued() == 0


async def test_a_slow_body_is_given_up(target):
    async with connected(target.address) as connection, anyio.create_task_group() as tasks:
        await connection.send(post(b"Content-Length: 100\r\n", b"", fixed=HOST))

        async def drip():
            while True:
                await connection.send(b"x")
                await anyio.wait_all_tasks_blocked()

        tasks.start_soon(drip)
        received = await connection.read()
        tasks.cancel_scope.cancel()
    assert statuses(received) in ([408], [])
    assert await target.enqueued() == 0


async def test_a_slow_head_is_given_up(target):
    for begun in (b"", b"G", b"GET /queues HTTP/1.1\r\nHost: a\r\nX"):
        async with connected(target.address) as connection:
            await connection.send(begun)
            assert 200 not in statuses(await connection.read())
    async with connected(target.address) as connection:
        await connection.send(get(fixed=HOST) + b"GET /queues HT")
        assert statuses(await connection.read())[:1] == [200]


async def test_an_upload_that_is_refused_leaves_nothing_behind(target, until):
    await target.enqueued()
    before = len(anyio.get_running_tasks())
    for path in (b"/queues/emails/enqueue", b"/queues/emails/release"):
        for body in (b"5\r\n12345\r\n" * 400, b"5\r\n12345\r\n" * 6_000, b"fffff\r\n" + b"x" * 0xFFFFF):
            received = await exchange(target.address, post(CHUNKED, body, path=path, fixed=HOST))
            assert statuses(received) in ([413], [])
    await until(lambda: len(anyio.get_running_tasks()) <= before)


async def test_hanging_up_in_the_middle_leaves_nothing_behind(target, until):
    await target.enqueued()
    before = len(anyio.get_running_tasks())
    whole = post(b"Content-Length: 100\r\n", b"x" * 100)
    for end in range(1, len(whole), 7):
        async with connected(target.address) as connection:
            await connection.send(whole[:end])
            connection.abort()
    await until(lambda: len(anyio.get_running_tasks()) <= before)
    assert await target.enqueued() == 0


@pytest.mark.parametrize("engine", ["hypercorn"])
async def test_http_2_is_served_and_refused_alike(target):
    async with httpx.AsyncClient(base_url=target.address, http1=False, http2=True) as client:
        response = await client.post("/queues/emails/enqueue", content=b"x")
        assert (response.status_code, response.http_version) == (200, "HTTP/2")
        for path in ("/queues/emails/enqueue", "/queues/emails/release"):
            refused(await client.post(path, content=b"x" * (MOST + 1)), 413, "body_too_large")
        refused(await client.get("/queues/none"), 404, "queue_not_found")
        assert (await client.get("/queues/emails/receive")).status_code == 200
