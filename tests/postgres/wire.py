"""Postgres's protocol as a relay sees it: whole messages between clients and a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from struct import Struct
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

INT = Struct("!I")
_CANCEL = 80_877_102
_PORT = 5432


class Message(NamedTuple):
    """One message; the startup has no kind."""

    kind: bytes
    body: bytes

    def packed(self) -> bytes:
        return self.kind + INT.pack(len(self.body) + INT.size) + self.body


class End:
    """One end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._coming: asyncio.Task[Message] | None = None

    async def startup(self) -> Message:
        """The first message of a client, which says who it is."""
        return await self._rest(b"")

    def coming(self) -> asyncio.Task[Message]:
        """The next message, read whole whoever waits for it; it ends in an EOFError at the end."""
        if self._coming is None:
            self._coming = asyncio.ensure_future(self._message())
        return self._coming

    async def message(self) -> Message:
        """The next message, once it is there."""
        await asyncio.wait([self.coming()])
        return self.come()

    def come(self) -> Message:
        """The message that has come."""
        coming, self._coming = self.coming(), None
        return coming.result()

    async def _message(self) -> Message:
        return await self._rest(await self.reader.readexactly(1))

    async def _rest(self, kind: bytes) -> Message:
        (length,) = INT.unpack(await self.reader.readexactly(INT.size))
        return Message(kind, await self.reader.readexactly(length - INT.size))

    def send(self, *messages: Message) -> None:
        self.writer.write(b"".join(message.packed() for message in messages))

    async def close(self) -> None:
        if self._coming is not None:
            self._coming.cancel()
            await asyncio.wait([self._coming])
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


def is_cancel(startup: Message) -> bool:
    """Whether it asks for another connection's statement to be cancelled, and is no session."""
    return INT.unpack_from(startup.body)[0] == _CANCEL


def place_of(url: str) -> tuple[str, int]:
    """The host of a URL, or the folder of its socket, and the port."""
    place = urlsplit(url)
    return parse_qs(place.query).get("host", [place.hostname])[0], place.port or _PORT


def socket_url(url: str, folder: Path) -> str:
    """The URL of the same database by a socket in a folder."""
    place = urlsplit(url)
    login, at, _ = place.netloc.rpartition("@")
    return f"postgresql://{login}{at}{place.path}?host={folder}"


async def dial(url: str) -> End:
    """A connection to the server of a URL, over its socket or TCP; nothing is said yet."""
    host, port = place_of(url)
    if host.startswith("/"):
        return End(*await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}"))
    return End(*await asyncio.open_connection(host, port))


@asynccontextmanager
async def listening(folder: Path, url: str, serve: Callable[[End], Awaitable[None]]) -> AsyncIterator[str]:
    """Take clients at a socket in a folder, until the end; the URL that leads there instead."""
    tasks: set[asyncio.Task] = set()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        tasks.add(task)
        client = End(reader, writer)
        try:
            await serve(client)
        except (EOFError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            await client.close()

    server = await asyncio.start_unix_server(take, folder / f".s.PGSQL.{_PORT}")
    try:
        yield socket_url(url, folder)
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
