"""A relay that ends a connection at one statement, as pg_terminate_backend or a network does."""

from __future__ import annotations

import asyncio
from enum import Enum, auto

from tests.postgres.wire import End, Message, dial, is_cancel

_STATEMENT, _SIMPLE, _READY = b"E", b"Q", b"Z"


class When(Enum):
    """Before the server has the statement, or once it has run it and before its client is told."""

    BEFORE = auto()
    AFTER = auto()


class Severed:
    """Counts statements from when it is armed, and severs the connection that sends the one it waits for."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.severed = False
        self._left: int | None = None
        self._when = When.BEFORE

    def arm(self, statement: int, when: When) -> None:
        """Sever at a statement from now on, the first of which is 1."""
        self._left, self._when, self.severed = statement, when, False

    def disarm(self) -> None:
        """Sever no more."""
        self._left = None

    async def serve(self, client: End) -> None:
        """One client, until it or the server goes."""
        startup = await client.startup()
        if is_cancel(startup):
            return
        server = await dial(self.url)
        server.send(startup)
        try:
            await self._relay(client, server)
        finally:
            await server.close()

    async def _relay(self, client: End, server: End) -> None:
        silent = False
        while True:
            done, _ = await asyncio.wait(
                (client.coming(), server.coming()), return_when=asyncio.FIRST_COMPLETED
            )
            if server.coming() in done:
                message = server.come()
                if not silent:
                    client.send(message)
                elif message.kind == _READY:
                    return
            if client.coming() in done:
                message = client.come()
                if self._is_the_one(message):
                    if self._when is When.BEFORE:
                        return
                    silent = True
                server.send(message)

    def _is_the_one(self, message: Message) -> bool:
        if self._left is None or message.kind not in {_STATEMENT, _SIMPLE}:
            return False
        self._left -= 1
        if self._left > 0:
            return False
        self._left, self.severed = None, True
        return True
