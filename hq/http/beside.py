"""The application on the Unix socket beside a SQLite file, for the other processes of its user."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio.to_thread

from hq.actors.node import Node
from hq.config import Server
from hq.domain.settings import MAX_PAYLOAD_BYTES
from hq.http.app import create_app
from hq.http.calls import Api, Terms
from hq.http.engines import run_hypercorn
from hq.system.line import Line

# Whatever a queue takes: a payload is a third larger in base64, and JSON is as deep as Python can read.
TERMS = Terms(max_body_bytes=2 * MAX_PAYLOAD_BYTES, max_json_depth=500)
SERVER = Server(grace_s=1.0)


async def serve(node: Node, listening: socket.socket, stopped: Callable[[], Awaitable[Any]]) -> None:
    """Serve until stopped: then long polls are answered, and it returns."""
    api = Api(Line(node), TERMS)
    app = await anyio.to_thread.run_sync(partial(create_app, api, dialects={}))

    async def stop() -> None:
        await stopped()
        api.drain()

    await run_hypercorn(app, SERVER, listening, stop)
