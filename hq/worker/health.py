"""Tells supervisors over HTTP whether a worker consumes: 200 if it does, 503 if it does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

ANSWERS = {True: b"200 OK", False: b"503 Service Unavailable"}
MOST_HEAD_BYTES = 8_192
READ_S = 5.0


@asynccontextmanager
async def health(host: str, port: int, is_alive: Callable[[], bool]) -> AsyncIterator[int]:
    """Answer every request to this address for as long as the block runs; the port, should 0 be asked for."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(
            OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError
        ):
            async with asyncio.timeout(READ_S):
                await reader.readuntil(b"\r\n\r\n")
            alive = is_alive()
            body = b'{"status":"%s"}' % (b"ok" if alive else b"not consuming")
            writer.write(
                b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                b"Connection: close\r\n\r\n%s" % (ANSWERS[alive], len(body), body)
            )
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, host, port, limit=MOST_HEAD_BYTES)
    async with server:
        yield server.sockets[0].getsockname()[1]
