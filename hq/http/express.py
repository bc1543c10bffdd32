"""The express lane: the hot routes, served before Quart sees them. Everything else goes on to Quart.

It is plain ASGI: find the route, read the body within its bounds, answer in two sends. A request that waits
for messages is given up as soon as its client has gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from hq.http.answers import answer
from hq.http.calls import Api
from hq.http.problems import BodyTooLarge, RequestTimeout, reply_of
from hq.http.reading import Bodies, Gone, Receive
from hq.http.replies import Reply
from hq.http.routes import ROUTES, Route

Send = Callable[[Any], Awaitable[None]]
Asgi = Callable[[Any, Receive, Send], Awaitable[None]]
ALWAYS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
"""What every answer says of itself."""


# Every express route is /first/{value}/last.
EXPRESS: dict[tuple[str, str, str], tuple[Route, str]] = {}
"""The route for a method, the first and the last part of a path, and what the part between is called."""
for _route in ROUTES:
    if _route.express:
        _, _first, _value, _last = _route.path.split("/")
        EXPRESS[_route.method, _first, _last] = _route, _value.strip("{}")


class Express:
    """An ASGI application in front of another."""

    def __init__(self, api: Api, onward: Asgi) -> None:
        self._api = api
        self._onward = onward
        self._bodies = Bodies(api.terms)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            parts = scope["path"].split("/")
            if len(parts) == 4 and parts[2] and not parts[0]:
                found = EXPRESS.get((scope["method"], parts[1], parts[3]))
                if found is not None:
                    route, name = found
                    await self._serve(route, {name: parts[2]}, scope, receive, send)
                    return
        await self._onward(scope, receive, send)

    async def _serve(
        self, route: Route, path: dict[str, str], scope: Any, receive: Receive, send: Send
    ) -> None:
        try:
            body = await self._bodies.read(receive)
            query = scope["query_string"]
            answering = answer(self._api, route, path, query, dict(scope["headers"]), body)
            reply = await (_while_there(answering, receive) if b"wait_ms" in query else answering)
        except Gone:
            return
        except (BodyTooLarge, RequestTimeout) as refusal:
            reply = reply_of(refusal, 0)
            await send_reply(reply, send, close=True)
            return
        await send_reply(reply, send)


async def _while_there(work: Awaitable[Reply], receive: Receive) -> Reply:
    """Do the work as long as the client is there; a receive that is given up leases nothing."""
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_hang_up(receive))
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise Gone
    finally:
        watching.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait((working,))


async def _hang_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def send_reply(reply: Reply, send: Send, *, close: bool = False) -> None:
    """Send a whole answer, the last of its connection if it is to close."""
    headers = [
        (b"content-type", reply.content_type.encode()),
        *ALWAYS,
        (b"content-length", str(len(reply.body)).encode()),
        *reply.headers,
    ]
    if close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
