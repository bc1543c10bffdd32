"""How many connections a server lets in at once, on either event loop."""

import asyncio
import sys
from functools import partial

import pytest

from hq.http.loops import new_loop


@pytest.fixture(params=["uvloop", "asyncio"])
def runner(request, monkeypatch):
    if request.param == "asyncio":
        monkeypatch.setitem(sys.modules, "uvloop", None)
    with asyncio.Runner(loop_factory=partial(new_loop, 2)) as bounded:
        assert (type(bounded.get_loop()).__mro__[1].__module__ == "uvloop") is (request.param == "uvloop")
        yield bounded


async def greet(greeted, reader, writer):
    greeted.append(asyncio.current_task())
    writer.write(b"hello")
    await reader.read()
    writer.close()
    await writer.wait_closed()


async def said(port):
    """A connection and what the server said first: nothing if it was not let in."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return writer, await asyncio.wait_for(reader.read(5), 5)
    except ConnectionResetError:
        return writer, b""


def test_a_server_lets_in_as_many_connections_as_it_may_and_others_when_they_have_gone(runner):
    async def connect():
        greeted = []
        async with await asyncio.start_server(partial(greet, greeted), "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            opened = [await said(port) for _ in range(4)]
            first = opened[0][0]
            first.close()
            await first.wait_closed()
            while (again := await said(port))[1] != b"hello":
                again[0].close()
            for writer, _ in (*opened[1:], again):
                writer.close()
            await asyncio.gather(*greeted)
            return [words for _, words in opened]

    assert runner.run(connect()) == [b"hello", b"hello", b"", b""]
