"""Bytes to a server and back, without a library that would keep one from sending nonsense."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import anyio

PATIENCE_S = 5
LENGTH = re.compile(rb"content-length: (\d+)\r\n")
STATUS = re.compile(rb"HTTP/1\.1 (\d{3})")


class Connection:
    """One connection to a server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        """Send this; a server that has gone already shows when one reads."""
        with suppress(ConnectionError):
            self._writer.write(data)
            await self._writer.drain()

    async def read(self) -> bytes:
        """All that comes until the server closes, which it must."""
        received = bytearray()
        with anyio.fail_after(PATIENCE_S), suppress(ConnectionError):
            while data := await self._reader.read(65_536):
                received += data
        return bytes(received)

    async def read_answer(self) -> bytes:
        """One answer, by the length it tells."""
        with anyio.fail_after(PATIENCE_S):
            head = await self._reader.readuntil(b"\r\n\r\n")
            return head + await self._reader.readexactly(int(LENGTH.findall(head)[0]))

    def half_close(self) -> None:
        """There will be no more to send."""
        self._writer.write_eof()

    def abort(self) -> None:
        """Hang up without a word."""
        self._writer.transport.abort()


@asynccontextmanager
async def connected(address: str) -> AsyncIterator[Connection]:
    """A connection, closed in the end."""
    where = urlsplit(address)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def exchange(address: str, data: bytes) -> bytes:
    """What a server says to this before it closes."""
    async with connected(address) as connection:
        await connection.send(data)
        return await connection.read()


def statuses(received: bytes) -> list[int]:
    """The statuses of all responses in what was received."""
    return [int(status) for status in STATUS.findall(received)]
