"""The events of a server: server-sent events, taken up again after the last whenever they break off."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import anyio
import httpx

from hq.actors.watch import Event, Wanted
from hq.client import answers
from hq.client.errors import Unanswered, Unsent, error_of
from hq.errors import Closed, HQError, Unreachable

SILENCE_S = 30.0
"""A server says at least every ten seconds that it is there."""
FIRST_PAUSE_S = 0.02
LONG_PAUSE_S = 2.0
Wait = anyio.CancelScope


class RemoteWatch:
    """A place in the journal of a server. It holds a connection from its beginning until it is closed."""

    def __init__(
        self, http: httpx.AsyncClient, wanted: Wanted, waiting: Callable[[], AbstractContextManager[Wait]]
    ) -> None:
        self._http = http
        self._waiting = waiting
        self._after = wanted.after
        path = "/events" if wanted.queue is None else f"/queues/{wanted.queue}/events"
        self._path = path
        self._query = {
            "prefix": wanted.prefix or None,
            "kinds": None if wanted.kinds is None else ",".join(sorted(wanted.kinds)),
        }
        self._response: httpx.Response | None = None
        self._begun = False

    @property
    def reached(self) -> str:
        """The place up to which everything wanted was given."""
        return self._after or ""

    async def begin(self) -> None:
        """Connect, and know where it starts; Closed when the node is closed meanwhile."""
        with self._waiting() as wait:
            await self._begin()
        if wait.cancelled_caught:
            raise Closed

    async def page(self) -> list[Event]:
        """The next event, waited for; what was read of one is read again if the wait is given up."""
        found: Event | None = None
        with self._waiting() as wait:
            while found is None:
                await self._begin()
                try:
                    found = await self._read()
                except httpx.TransportError:
                    await self.aclose()
                except BaseException:
                    await self.aclose()
                    raise
        if wait.cancelled_caught or found is None:
            raise Closed
        return [found]

    async def gone(self) -> None:
        """Return when the server has gone: it hung up, or says nothing any more."""
        try:
            await self._connect()
            async for _ in self._lines:
                pass
        except (Unsent, Unanswered, HQError, httpx.TransportError):
            return
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Hang up; the place is kept."""
        response, self._response = self._response, None
        if response is not None:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    async def _begin(self) -> None:
        """Connect. Once it has begun, it waits for a server as long as it takes."""
        pause = FIRST_PAUSE_S
        while self._response is None:
            if pause > FIRST_PAUSE_S or self._begun:
                await anyio.sleep(pause)
            pause = min(2 * LONG_PAUSE_S, pause * 2)
            try:
                await self._connect()
            except (Unsent, Unanswered) as error:
                if pause > LONG_PAUSE_S and not self._begun:
                    raise Unreachable from error

    async def _connect(self) -> None:
        query = {
            name: value for name, value in {**self._query, "after": self._after}.items() if value is not None
        }
        request = self._http.build_request(
            "GET", self._path, params=query, timeout=httpx.Timeout(5.0, read=SILENCE_S)
        )
        try:
            response = await self._http.send(request, stream=True)
            if not response.is_success:
                raise error_of(response.status_code, await response.aread())
            self._lines = response.aiter_lines()
            # The first thing it says is from where: then a wait that is given up loses nothing.
            async for line in self._lines:
                if not line:
                    break
                if line.startswith("id: "):
                    self._after = line.removeprefix("id: ")
        except httpx.TransportError as error:
            raise Unsent(str(error)) from error
        self._response = response
        self._begun = True

    async def _read(self) -> Event | None:
        """The next event, or None if the stream has ended or only said that it is there."""
        said: dict[str, str] = {}
        async for line in self._lines:
            if line:
                name, _, value = line.partition(": ")
                said[name] = value
                continue
            if "id" in said:
                self._after = said["id"]
            if said.get("event") == "error":
                raise error_of(410, said["data"].encode())
            if "data" in said:
                return answers.event(said["data"])
            said = {}
        await self.aclose()
        return None
