"""The express lane: the hot routes, served before Quart sees them. Everything else goes on to Quart.

It is plain ASGI: find the route, read the body within its bounds, answer in two sends. A request that waits
for messages is given up as soon as its client has gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from operator import itemgetter
from typing import Any

from hq.http.answers import answer
from hq.http.calls import Api
from hq.http.problems import BodyTooLarge, RequestTimeout
from hq.http.reading import Bodies, Gone, Receive
from hq.http.replies import Reply
from hq.http.routes import Route

Send = Callable[[Any], Awaitable[None]]
Asgi = Callable[[Any, Receive, Send], Awaitable[None]]
ALWAYS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
"""What every answer says of itself."""


class Hot:
    """The hot routes of a table. Addresses of one length have their values in the same places."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._shapes: dict[int, _Shape] = {}
        for route in routes:
            if route.express:
                parts = route.path.split("/")
                shape = self._shapes.setdefault(len(parts), _Shape(parts))
                shape.add(route, parts)

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        """The route at this address, and the values in it."""
        parts = path.split("/")
        shape = self._shapes.get(len(parts))
        return None if shape is None else shape.find(method, parts)


class _Shape:
    """Addresses of one length: which parts are said in the table, and which are values."""

    def __init__(self, parts: list[str]) -> None:
        self._values = [place for place, part in enumerate(parts) if part[:1] == "{"]
        self._fixed = itemgetter(*(place for place, part in enumerate(parts) if part[:1] != "{"))
        self._routes: dict[tuple[str, object], tuple[Route, list[tuple[str, int]]]] = {}

    def add(self, route: Route, parts: list[str]) -> None:
        """One more address."""
        values = [place for place, part in enumerate(parts) if part[:1] == "{"]
        assert values == self._values, f"{route.path} has its values elsewhere"
        names = [(parts[place].strip("{}"), place) for place in values]
        self._routes[route.method, self._fixed(parts)] = route, names

    def find(self, method: str, parts: list[str]) -> tuple[Route, dict[str, str]] | None:
        """The route of these parts; none of its values is empty."""
        found = self._routes.get((method, self._fixed(parts)))
        if found is None:
            return None
        route, names = found
        values = {name: parts[place] for name, place in names}
        return None if "" in values.values() else (route, values)


class Express:
    """An ASGI application in front of another."""

    def __init__(self, api: Api, hot: Hot, onward: Asgi) -> None:
        self._api = api
        self._hot = hot
        self._onward = onward
        self._bodies = Bodies(api.terms)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            found = self._hot.find(scope["method"], scope["path"])
            if found is not None:
                await self._serve(*found, scope, receive, send)
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
            await send_reply(route.tell(refusal, 0), send, close=True)
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
    headers = list(ALWAYS)
    if reply.status != 204:
        # Of no content there is neither type nor length to tell (RFC 9110, 8.6).
        headers.append((b"content-length", str(len(reply.body)).encode()))
        if reply.content_type:
            headers.insert(0, (b"content-type", reply.content_type.encode()))
    headers += reply.headers
    if close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
