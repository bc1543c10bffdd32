"""hq serve: the store, the application and an engine, from start to a graceful stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict

import hq
from hq.config import Config, Server
from hq.http.app import create_app, create_dialect_app
from hq.http.calls import Api, Terms
from hq.http.dialects.table import BY_NAME
from hq.http.engines import ENGINES
from hq.http.sockets import allow_files, listen
from hq.system.collector import calm_collector

log = logging.getLogger("hq.server")
OWN_FILES = 200
ENDING = (signal.SIGTERM, signal.SIGINT)


async def serve(config: Config, *, ready: Callable[[str, str | None], None]) -> None:
    """Serve until SIGTERM or SIGINT: then long polls are answered, appends are finished, and it returns.

    `ready` is told the server's address once it listens, then that of each dialect with a port of its own.
    """
    stop = asyncio.Event()
    server = config.server
    server.check_bind(keys=0)
    for place in config.listen:
        server.check_listen(place, keys=int(place.dialect == "cl-sqs" and config.cl_sqs.api_key is not None))
    opening = hq.open(
        config.database,
        limits=config.limits,
        durability=config.sqlite.durability,
        access="exclusive",
        postgres=asdict(config.postgres),
    )
    with _Signals(stop):
        async with opening as system:
            api = Api(system.line, terms_of(config))
            allow_files(server.max_connections + OWN_FILES)
            with ExitStack() as sockets:
                doors = [(sockets.enter_context(listen(server)), create_app(api))]
                for place in config.listen:
                    app = create_dialect_app(api, BY_NAME[place.dialect])
                    doors.append((sockets.enter_context(listen(place)), app))
                calm_collector()
                for listening, app in doors:
                    ready(_address(server, listening), app.dialect and app.dialect.name)

                async def stopped() -> None:
                    await stop.wait()
                    log.info("stopping")
                    api.drain()

                run = ENGINES[server.engine]
                serving = [
                    asyncio.ensure_future(run(app, server, listening, stopped)) for listening, app in doors
                ]
                try:
                    await asyncio.gather(*serving)
                finally:
                    stop.set()
                    await asyncio.wait(serving)


def _address(server: Server, listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    scheme = "http" if server.tls_certificate is None else "https"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def terms_of(config: Config) -> Terms:
    """What this configuration asks of requests."""
    server = config.server
    return Terms(
        server.max_body_bytes,
        server.read_timeout_s,
        server.request_timeout,
        frozenset(server.cors_origins),
        server.max_json_depth,
        server.max_header_bytes,
        config.cl_sqs.api_key,
    )


class _Signals:
    """Sets an event when the process is asked to end; asking again, until it has ended, changes nothing."""

    def __init__(self, stop: asyncio.Event) -> None:
        self._stop = stop

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, self._stop.set)

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.remove_signal_handler(number)
            # By default it would kill what has almost ended.
            signal.signal(number, signal.SIG_IGN)
