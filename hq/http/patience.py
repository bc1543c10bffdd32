"""uvicorn's HTTP protocol with bounds on a head: so many bytes, so much time. uvicorn itself has neither."""

from __future__ import annotations

import asyncio
from typing import Any

from hq.config import Server
from hq.http.direct import Direct
from hq.http.door import Door
from hq.http.problems import BadRequest, HeadTooLarge, Refused, reply_of


class Bounded(Direct):
    """One connection. `_begun` is since when a head is waited for or under way, None if it is not."""

    _begun: float | None = None
    _size = 0

    def __init__(self, door: Door, server: Server, **known: Any) -> None:
        super().__init__(door, server, **known)
        self._server = server

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn
        super().connection_made(transport)
        self._begun = self.loop.time()
        self._timer = self.loop.call_later(self._server.read_timeout_s, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._begun is not None:
            self._size += len(data)
            if self._size > self._server.max_header_bytes:
                self._refuse(HeadTooLarge())
        elif self._is_idle():
            self._begun = self.loop.time()

    def on_message_begin(self) -> None:
        self._begun = self.loop.time()
        self._size = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._begun = None

    def send_400_response(self, msg: str) -> None:
        self._refuse(BadRequest(msg))

    def _is_idle(self) -> bool:
        """Whether nothing is under way, nor timed by uvicorn: it has no timer once anything has come."""
        return self.cycle.response_complete and self.timeout_keep_alive_task is None

    def _look(self) -> None:
        now = self.loop.time()
        if self._begun is not None and now - self._begun >= self._server.read_timeout_s:
            self.transport.close()
        else:
            self._timer = self.loop.call_later(self._server.read_timeout_s, self._look)

    def _refuse(self, refusal: Refused) -> None:
        reply = reply_of(refusal, 0)
        head = (
            f"HTTP/1.1 {reply.status} \r\ncontent-type: {reply.content_type}\r\n"
            f"content-length: {len(reply.body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + reply.body)
        self.transport.close()
