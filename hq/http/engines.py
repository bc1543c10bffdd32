"""The servers hq runs on: Hypercorn, or uvicorn for throughput. Either serves until it is told to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import Any

import hypercorn
from hypercorn.asyncio import serve as serve_hypercorn
from hypercorn.config import Sockets

from hq.config import Server
from hq.errors import ConfigInvalid
from hq.http.door import Door
from hq.http.sockets import BACKLOG

Engine = Callable[[Door, Server, socket.socket, Callable[[], Awaitable[Any]]], Awaitable[None]]


class _Settings(hypercorn.Config):
    """Hypercorn's settings, for a socket that listens already."""

    def __init__(self, listening: socket.socket, *, secure: bool) -> None:
        super().__init__()
        self._listening = listening
        self._secure = secure

    def create_sockets(self) -> Sockets:
        one = [self._listening]
        return Sockets(one, [], []) if self._secure else Sockets([], one, [])


async def run_hypercorn(
    app: Door, server: Server, listening: socket.socket, stopped: Callable[[], Awaitable[Any]]
) -> None:
    """Serve with Hypercorn."""
    settings = _Settings(listening, secure=server.tls_certificate is not None)
    settings.include_server_header = False
    settings.accesslog = "-" if server.access_log else None
    settings.errorlog = None
    settings.keep_alive_timeout = server.keep_alive_s
    settings.keep_alive_max_requests = server.keep_alive_max_requests
    settings.read_timeout = None
    settings.graceful_timeout = server.grace_s
    settings.h11_max_incomplete_size = server.max_header_bytes
    settings.h2_max_header_list_size = server.max_header_bytes
    settings.backlog = BACKLOG
    if server.tls_certificate is not None:
        settings.certfile, settings.keyfile = str(server.tls_certificate), str(server.tls_key)
    await serve_hypercorn(app, settings, shutdown_trigger=stopped, mode="asgi")


async def run_uvicorn(
    app: Door, server: Server, listening: socket.socket, stopped: Callable[[], Awaitable[Any]]
) -> None:
    """Serve with uvicorn."""
    try:
        uvicorn, patience = import_module("uvicorn"), import_module("hq.http.patience")
    except ImportError:
        raise ConfigInvalid("the engine uvicorn is not installed: pip install 'hq-queue[uvicorn]'") from None
    settings = uvicorn.Config(
        app,
        http=partial(patience.Bounded, app, server),
        log_config=None,
        access_log=server.access_log,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="off",
        timeout_keep_alive=server.keep_alive_s,
        timeout_graceful_shutdown=server.grace_s,
        ssl_certfile=server.tls_certificate,
        ssl_keyfile=server.tls_key,
    )
    running = uvicorn.Server(settings)
    # Signals are hq's to hear.
    running.capture_signals = _no_signals

    async def stop() -> None:
        await stopped()
        running.should_exit = True

    stopping = asyncio.ensure_future(stop())
    try:
        await running.serve(sockets=[listening])
    finally:
        stopping.cancel()
        with suppress(asyncio.CancelledError):
            await stopping


@contextmanager
def _no_signals() -> Iterator[None]:
    yield


ENGINES: dict[str, Engine] = {"hypercorn": run_hypercorn, "uvicorn": run_uvicorn}
