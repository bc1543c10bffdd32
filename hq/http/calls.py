"""One request as handlers see it, whichever lane it came by."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import anyio

from hq.actors.node import Node
from hq.errors import ConfigInvalid
from hq.http.metrics import Metrics
from hq.http.replies import Reply
from hq.system.line import Line

Headers = dict[bytes, bytes]


class Api:
    """What every handler works with: the line to the queues, and whether the server stops."""

    def __init__(self, line: Line, terms: Terms) -> None:
        if not isinstance(line.node, Node):
            raise ConfigInvalid("hq serves a store that it holds itself, not one of another process")
        self.line = line
        self.node = line.node
        self.terms = terms
        self.metrics = Metrics(line.node)
        self.draining = False
        # One reply in columns is made at a time: it keeps a core busy, and no more is held in memory.
        self.columns = anyio.Lock()
        self.backups = anyio.Lock()
        self._waits: set[anyio.CancelScope] = set()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A wait for something other than messages; it ends when the server stops."""
        with anyio.CancelScope() as scope:
            self._waits.add(scope)
            try:
                yield
            finally:
                self._waits.discard(scope)

    def drain(self) -> None:
        """End all waits, and let none begin."""
        self.draining = True
        self.node.end_waits()
        for scope in list(self._waits):
            scope.cancel()


class Terms(NamedTuple):
    """What the server asks of requests."""

    max_body_bytes: int = 4 << 20
    read_timeout_s: float = 30.0
    request_timeout_s: float | None = None
    origins: frozenset[str] = frozenset()
    max_json_depth: int = 64
    max_header_bytes: int = 16 << 10
    cl_sqs_key: str | None = None


class Call:
    """A request: the values of its path, its query and headers, and its body."""

    __slots__ = ("api", "body", "headers", "line", "node", "path", "query")

    def __init__(self, api: Api, path: dict[str, str], query: Any, headers: Headers, body: bytes) -> None:
        self.api = api
        self.line = api.line
        self.node = api.node
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body

    @property
    def queue(self) -> str:
        """The queue's name in the path."""
        return self.path["queue"]

    @property
    def content_type(self) -> str | None:
        """The declared content type, as it came."""
        declared = self.headers.get(b"content-type")
        return None if declared is None else declared.decode("latin-1")

    @property
    def depth(self) -> int:
        """How deep JSON may be nested."""
        return self.api.terms.max_json_depth

    def post(self, command: Any) -> asyncio.Future[Any]:
        """Hand a command to the queue of the path."""
        return self.node.post(self.line.number(self.queue), command)


Handler = Callable[[Call], Awaitable[Reply]]
