"""The shortest way through uvicorn: hot requests are answered from its parser, without ASGI.

It takes what is plain: one request at a time, in one piece, with nothing to wait for and nothing in it that
could be read in two ways. All others go on through the door, as if there were no such way.
"""

from __future__ import annotations

import asyncio
import re
from functools import lru_cache
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from hq.config import Server
from hq.http.answers import answer
from hq.http.calls import Api, Headers
from hq.http.door import LONGEST_NUMBER, MAX_HEADERS, Door
from hq.http.express import ALWAYS
from hq.http.routes import ROUTES, Route

_ADDRESS = re.compile(rb"/([a-z]+)/([A-Za-z0-9_.-]+)/([a-z]+)(?:\?([A-Za-z0-9_.=&-]*))?").fullmatch
# Every hot route of hq's own is /first/{value}/last.
EXPRESS: dict[tuple[str, str, str], tuple[Route, str]] = {}
"""The route for a method, the first and the last part of a path, and what the part between is called."""
for _route in ROUTES:
    if _route.express:
        _, _first, _value, _last = _route.path.split("/")
        EXPRESS[_route.method, _first, _last] = _route, _value.strip("{}")
_ROUTES = {
    (method.encode(), first.encode(), last.encode()): found
    for (method, first, last), found in EXPRESS.items()
}
_UNUSUAL = frozenset((b"transfer-encoding", b"expect", b"upgrade"))
# uvicorn sets it when a client has gone; nobody here waits for that.
_UNHEARD = asyncio.Event()

Asked = tuple[Route, dict[str, str], bytes, Headers]


class Direct(HttpToolsProtocol):
    """One connection. `_held` is a request without its body yet; if `_fresh`, its head came in one piece."""

    _held: Asked | None = None
    _body = b""
    _fresh = False
    _piece = 0

    def __init__(self, door: Door, server: Server, **known: Any) -> None:
        super().__init__(**known)
        self._api = door.api
        # What uvicorn is to log, it must answer itself; and a port of a dialect has none of these routes.
        self._longest = 0 if server.access_log or door.dialect else server.max_header_bytes

    def data_received(self, data: bytes) -> None:
        self._fresh, self._piece = False, len(data)
        super().data_received(data)
        if self._held is not None:
            self._let_go()

    def on_message_begin(self) -> None:
        self._fresh = True
        self.url = b""
        self.headers = []
        self.expect_100_continue = False

    def on_headers_complete(self) -> None:
        self._held = self._taken()
        if self._held is None:
            self._go_on()

    def on_body(self, body: bytes) -> None:
        if self._held is None:
            super().on_body(body)
        else:
            self._body += body

    def on_message_complete(self) -> None:
        held = self._held
        if held is None:
            super().on_message_complete()
            return
        self.cycle = Answering(self, self._api, held, self._body)
        self._held, self._body = None, b""
        self._start_asgi_task(self.cycle, self.app)

    def _taken(self) -> Asked | None:
        """What is asked, if it is hot and plain, and the one before it was answered."""
        address = _ADDRESS(self.url)
        if address is None or not self._fresh or self._piece > self._longest:
            return None
        first, value, last, query = address.groups(b"")
        found = _ROUTES.get((self.parser.get_method(), first, last))
        if found is None or b"wait_ms" in query or not self._is_plain():
            return None
        headers: Headers = dict(self.headers)
        if len(headers) != len(self.headers) or b"host" not in headers or not _UNUSUAL.isdisjoint(headers):
            return None
        length = headers.get(b"content-length", b"0")
        if (
            not length.isdigit()
            or len(length) > LONGEST_NUMBER
            or int(length) > self._api.terms.max_body_bytes
        ):
            return None
        route, name = found
        return route, {name: value.decode()}, query, headers

    def _is_plain(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return (
            (cycle is None or cycle.response_complete)
            and self.parser.get_http_version() == "1.1"
            and len(self.headers) <= MAX_HEADERS
        )

    def _let_go(self) -> None:
        """There is more to come: it goes on through the door."""
        body, self._held, self._body = self._body, None, b""
        self._go_on()
        if body:
            super().on_body(body)

    def _go_on(self) -> None:
        """Begin the request as uvicorn does, now that its head is there."""
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.headers += headers
        self.url, self.expect_100_continue = url, expects
        super().on_headers_complete()


class Answering(RequestResponseCycle):
    """One request and its answer, in the place of uvicorn's own."""

    def __init__(self, protocol: Direct, api: Api, asked: Asked, body: bytes) -> None:
        self._protocol = protocol
        self._request = api, *asked, body
        self.keep_alive = protocol.parser.should_keep_alive()
        self.message_event = _UNHEARD
        self.disconnected = False
        self.response_complete = False

    async def run_asgi(self, app: Any) -> None:  # noqa: ARG002 - the name and the argument are uvicorn's
        """Answer in one write."""
        protocol = self._protocol
        try:
            reply = await answer(*self._request)
            if protocol.flow.write_paused:
                await protocol.flow.drain()
        except BaseException:
            protocol.transport.close()
            raise
        self.response_complete = True
        if self.disconnected:
            return
        parts = [_head(reply.status, reply.content_type), b"content-length: %d\r\n" % len(reply.body)]
        parts += [b"%b: %b\r\n" % field for field in protocol.server_state.default_headers]
        parts += [b"%b: %b\r\n" % field for field in reply.headers]
        if not self.keep_alive:
            parts.append(b"connection: close\r\n")
        protocol.transport.write(b"".join((*parts, b"\r\n", reply.body)))
        if not self.keep_alive:
            protocol.transport.close()
        protocol.on_response_complete()


@lru_cache(maxsize=256)
def _head(status: int, content_type: str) -> bytes:
    """The beginning of an answer, which most have in common."""
    fields = [(b"content-type", content_type.encode()), *ALWAYS]
    return STATUS_LINE[status] + b"".join(b"%b: %b\r\n" % field for field in fields)
