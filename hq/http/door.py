"""The door: what no lane shall see, because two readers could read it in two ways, or because it is too long.

A request that is refused here is the last of its connection: whatever follows it may be a part of it. HTTP/2
frames its requests, so nothing of this can be said in it.
"""

from __future__ import annotations

from typing import Any

from hq.http.calls import Api
from hq.http.dialects.dialect import Dialect
from hq.http.express import Asgi, Send, send_reply
from hq.http.problems import BadRequest, BodyTooLarge, HeadTooLarge, Refused, reply_of
from hq.http.reading import Receive

MAX_HEADERS = 100
LONGEST_NUMBER = 18


class Door:
    """An ASGI application in front of both lanes; on a port of its own, of a dialect alone."""

    def __init__(self, api: Api, onward: Asgi, dialect: Dialect | None = None) -> None:
        self.api = api
        self.dialect = dialect
        self._terms = api.terms
        self._onward = onward

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["http_version"] != "2":
            refusal = self._refusal(scope)
            if refusal is not None:
                await send_reply(reply_of(refusal, 0), send, close=True)
                return
        await self._onward(scope, receive, send)

    def _refusal(self, scope: Any) -> Refused | None:
        path: str = scope["path"]
        size = len(path) + len(scope["query_string"])
        hosts = 0
        length = chunked = None
        for name, value in scope["headers"]:
            size += len(name) + len(value)
            if name == b"host":
                hosts += 1
            elif name == b"content-length":
                length = value
            elif name == b"transfer-encoding":
                chunked = value
        if size > self._terms.max_header_bytes or len(scope["headers"]) > MAX_HEADERS:
            return HeadTooLarge()
        if hosts != 1 and (hosts or scope["http_version"] == "1.1"):
            return BadRequest("a request has one Host header")
        if not path.startswith(("/", "http://", "https://")):
            return BadRequest("a path begins with a slash")
        if length is None:
            return None
        if chunked is not None:
            return BadRequest("a body has a length or comes in chunks, not both")
        if not length.isdigit():
            return BadRequest("a length is a number")
        if len(length) > LONGEST_NUMBER or int(length) > self._terms.max_body_bytes:
            return BodyTooLarge()
        return None
