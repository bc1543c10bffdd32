"""A pooler in transaction mode, as strict as one may be: after each transaction a client gets another server.

It tracks statements that are prepared by name as PgBouncer 1.21 does, or passes them on, as an older one.
It logs in as its first client does, at a server that trusts it, and greets all others as it was greeted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from hashlib import blake2s

from tests.postgres.wire import End, Message, dial, is_cancel

_PARSED, _CLOSED, _READY, _ERROR = b"1", b"3", b"Z", b"E"
_END_OF_ROUND = (b"S", b"Q")
_AT_REST = Message(_READY, b"I")


class Server:
    """A connection of the pooler, with what its present client is still owed."""

    def __init__(self, end: End) -> None:
        self.end = end
        self.client: End | None = None
        self.known: set[bytes] = set()
        self.rounds = 0
        # Of each such answer to come, whether it was the client who asked.
        self.owed: dict[bytes, deque[bool]] = {_PARSED: deque(), _CLOSED: deque()}

    def ask(self, message: Message, *, wanted: bool) -> None:
        """Send a message, whose answer the client shall see or not."""
        answer = {b"P": _PARSED, b"C": _CLOSED}.get(message.kind)
        if answer:
            self.owed[answer].append(wanted)
        self.end.send(message)

    def wants(self, message: Message) -> bool:
        """Whether the client shall see what the server said."""
        if message.kind in self.owed:
            return self.owed[message.kind].popleft()
        if message.kind == _ERROR:
            self.known.clear()
        if message.kind == _READY:
            self.rounds -= 1
            for answers in self.owed.values():
                answers.clear()
        return True


class Pooler:
    """So many servers for any number of clients."""

    def __init__(self, url: str, servers: int, *, tracks: bool) -> None:
        self.url = url
        self.tracks = tracks
        self.handovers = 0
        """How often a server had served another client before."""
        self._servers = servers
        self._door = asyncio.Lock()
        self._room = asyncio.Semaphore(servers)
        self._idle: deque[Server] = deque()
        self._ends: list[End] = []
        self._greeting: list[Message] = []

    async def serve(self, client: End) -> None:
        """One client, until it goes."""
        startup = await client.startup()
        if is_cancel(startup):
            return
        await self._greet(client, startup)
        statements: dict[bytes, bytes] = {}
        while True:
            message = await client.message()
            if message.kind == b"X":
                return
            async with self._room:
                server = self._idle.popleft()
                self.handovers += server.client not in {None, client}
                server.client = client
                await self._transaction(client, server, message, statements)
                # Not one that was left in the middle.
                self._idle.append(server)

    async def close(self) -> None:
        for end in self._ends:
            await end.close()

    async def _greet(self, client: End, startup: Message) -> None:
        async with self._door:
            while len(self._ends) < self._servers:
                self._idle.append(await self._log_in(startup))
        client.send(*self._greeting)

    async def _log_in(self, startup: Message) -> Server:
        """A new connection to the server, which must trust its clients."""
        end = await dial(self.url)
        self._ends.append(end)
        end.send(startup)
        greeting: list[Message] = []
        while not greeting or greeting[-1].kind != _READY:
            greeting.append(await end.message())
            assert greeting[-1].kind != _ERROR, greeting[-1].body
        self._greeting = greeting
        return Server(end)

    async def _transaction(
        self, client: End, server: Server, first: Message, statements: dict[bytes, bytes]
    ) -> None:
        """Relay until the server is in no transaction and owes nothing."""
        self._forward(server, first, statements)
        while True:
            done, _ = await asyncio.wait(
                (client.coming(), server.end.coming()), return_when=asyncio.FIRST_COMPLETED
            )
            if server.end.coming() in done:
                message = server.end.come()
                if server.wants(message):
                    client.send(message)
                if message == _AT_REST and server.rounds == 0:
                    return
            if client.coming() in done:
                self._forward(server, client.come(), statements)

    def _forward(self, server: Server, message: Message, statements: dict[bytes, bytes]) -> None:
        """Send a client's message on, its statements under names that are the same for all clients."""
        kind, body = message
        if kind in _END_OF_ROUND:
            server.rounds += 1
        if not self.tracks or kind not in _NAMING:
            server.ask(message, wanted=True)
            return
        before, name, rest = _NAMING[kind](body)
        if not name:
            server.ask(message, wanted=True)
            return
        if kind == b"P":
            statements[name] = rest
        text = statements[name]
        common = b"common_" + blake2s(text, digest_size=8).hexdigest().encode()
        if kind == b"P" or common not in server.known:
            # Closing one that is not there does no harm.
            server.ask(Message(b"C", b"S" + common + b"\0"), wanted=False)
            server.ask(Message(b"P", common + b"\0" + text), wanted=kind == b"P")
            server.known.add(common)
        if kind != b"P":
            server.ask(Message(kind, before + common + b"\0" + rest), wanted=True)


def _of_parse(body: bytes) -> tuple[bytes, bytes, bytes]:
    name, _, rest = body.partition(b"\0")
    return b"", name, rest


def _of_bind(body: bytes) -> tuple[bytes, bytes, bytes]:
    portal, _, rest = body.partition(b"\0")
    name, _, rest = rest.partition(b"\0")
    return portal + b"\0", name, rest


def _of_statement(body: bytes) -> tuple[bytes, bytes, bytes]:
    """Of a message that describes or closes a statement, unless it is about a portal."""
    name, _, rest = body[1:].partition(b"\0")
    return b"S", name if body[:1] == b"S" else b"", rest


_NAMING = {b"P": _of_parse, b"B": _of_bind, b"D": _of_statement, b"C": _of_statement}
