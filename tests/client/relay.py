"""A relay between a client and a server that loses requests or answers when it is told to."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.abc import SocketAttribute, SocketStream

GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


class Relay:
    """Hands bytes on. What it loses, it loses whole, with the connection."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.requests_to_lose = 0
        self.answers_to_lose = 0
        self.requests = 0
        self._ways: set[anyio.CancelScope] = set()
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def serve(self, client: SocketStream) -> None:
        async with client:
            # A server that is away is not reached, here as elsewhere.
            with suppress(OSError):
                await self._hand_on(client, await anyio.connect_tcp("127.0.0.1", self.port))

    def hang_up(self, port: int) -> None:
        """End all connections there are; those to come go elsewhere."""
        self.port = port
        for way in self._ways:
            way.cancel()

    async def _hand_on(self, client: SocketStream, server: SocketStream) -> None:
        async with server, anyio.create_task_group() as tasks:

            async def pump(source, target, lose):
                with suppress(*GONE):
                    while True:
                        data = await source.receive(1 << 20)
                        if lose():
                            if self.meanwhile is not None:
                                await self.meanwhile()
                            break
                        await target.send(data)
                tasks.cancel_scope.cancel()

            tasks.start_soon(pump, client, server, self._loses_request)
            tasks.start_soon(pump, server, client, self._loses_answer)
            self._ways.add(tasks.cancel_scope)

    def _loses_request(self) -> bool:
        self.requests += 1
        self.requests_to_lose -= (lost := self.requests_to_lose > 0)
        return lost

    def _loses_answer(self) -> bool:
        self.answers_to_lose -= (lost := self.answers_to_lose > 0)
        return lost


@asynccontextmanager
async def relayed(address: str) -> AsyncIterator[tuple[Relay, str]]:
    """A relay to a server, and its address."""
    relay = Relay(int(address.rpartition(":")[2]))
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, relay.serve)
        yield relay, f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"  # noqa: S610 - this is no Django
        tasks.cancel_scope.cancel()
