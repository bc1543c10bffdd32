"""The event loop of a server: uvloop if it is installed, with a bound on connections.

Hypercorn has no such bound of its own; uvicorn has one on requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Any

Factory = Callable[[], asyncio.Protocol]


def new_loop(most: int) -> asyncio.AbstractEventLoop:
    """A loop whose servers let in so many connections at a time; one more is closed at once."""
    try:
        base = import_module("uvloop").Loop
    except ImportError:
        base = asyncio.SelectorEventLoop
    connections = _Connections(most)

    class Loop(base):  # type: ignore[misc, valid-type]  # either of two
        async def create_server(self, protocol_factory: Factory, *args: Any, **kwargs: Any) -> Any:
            return await super().create_server(connections.counted(protocol_factory), *args, **kwargs)

    loop: asyncio.AbstractEventLoop = Loop()
    return loop


class _Connections:
    """How many there are."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0

    def counted(self, factory: Factory) -> Factory:
        """The same protocols, but counted while they are connected."""

        def protocol() -> Any:
            made: Any = factory()
            begin, end = made.connection_made, made.connection_lost

            def connection_made(transport: asyncio.Transport) -> None:
                if self._held >= self._most:
                    made.connection_lost = _nothing  # it was never begun
                    transport.abort()
                    return
                self._held += 1
                begin(transport)

            def connection_lost(error: Exception | None) -> None:
                self._held -= 1
                end(error)

            made.connection_made, made.connection_lost = connection_made, connection_lost
            return made

        return protocol


def _nothing(_: Exception | None) -> None:
    pass
