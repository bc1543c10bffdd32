"""Requests over kept connections, sent again where that is safe, with the truth told where it is not."""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Any, NamedTuple

import httpx
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from hq.actors.clock import Clock
from hq.client.clock import RemoteClock
from hq.client.errors import Unanswered, Unsent, error_of
from hq.client.requests import Ask, Repeat
from hq.errors import HQError, OutcomeUnknown, Unreachable

# Nothing was sent, for there was no connection to send it by.
_NO_CONNECTION = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
JSON = {"content-type": "application/json"}
BYTES = {"content-type": "application/octet-stream"}


class Patience(NamedTuple):
    """How long a client waits: for a connection, for an answer, and for a server that does not answer."""

    connect_s: float = 5.0
    answer_s: float = 30.0
    server_s: float = 15.0


class Address(NamedTuple):
    """Where a server is: its URL, the Unix socket that leads there, if one does, and the key it is shown."""

    url: str
    socket: str | None = None
    api_key: str | None = None


def connections(address: Address, patience: Patience, most: int) -> httpx.AsyncClient:
    """At most so many connections to a server; it reads files, so it is called in a thread."""
    secure = address.url.startswith("https:")
    transport = httpx.AsyncHTTPTransport(
        verify=ssl.create_default_context() if secure else False,
        uds=address.socket,
        http1=True,
        http2=False,
        retries=0,
        # Shorter than a server keeps one, so that no request meets a connection that is closing.
        limits=httpx.Limits(max_connections=most, max_keepalive_connections=most, keepalive_expiry=15.0),
    )
    timeout = httpx.Timeout(patience.answer_s, connect=patience.connect_s, pool=patience.answer_s)
    return httpx.AsyncClient(
        base_url=address.url, transport=transport, timeout=timeout, follow_redirects=False, trust_env=False,
        headers={} if address.api_key is None else {"authorization": f"Bearer {address.api_key}"},
    )  # fmt: skip


class Calls:
    """Asks a server."""

    def __init__(self, http: httpx.AsyncClient, clock: Clock, patience: Patience) -> None:
        self.http = http
        self._clock = clock
        self._patience = patience

    async def once(self, ask: Ask, wait_s: float = 0.0) -> Any:
        """The reply; Unsent, Unanswered, or the error that was told."""
        query = {name: value for name, value in ask.query.items() if value is not None}
        headers = None
        if ask.body:
            headers = BYTES if ask.path.endswith("/by-key") else JSON
        try:
            response = await self.http.request(
                ask.method,
                ask.path,
                params=query or None,
                content=ask.body,
                headers=headers,
                timeout=self.http.timeout if not wait_s else self._waiting(wait_s),
            )
        except _NO_CONNECTION as error:
            raise Unsent(str(error)) from error
        except httpx.TransportError as error:
            raise Unanswered(str(error)) from error
        now = response.headers.get("hq-now")
        if now is not None and isinstance(self._clock, RemoteClock):
            self._clock.hear(int(now))
        if not response.is_success:
            raise error_of(response.status_code, response.content)
        return ask.read(response.content)

    async def send(self, ask: Ask) -> Any:
        """The reply, however often it takes to get one; a request of unknown outcome is told as that."""
        tries = Tries(ask)
        with suppress(Unsent, Unanswered):
            async for attempt in AsyncRetrying(
                stop=stop_after_delay(self._patience.server_s),
                wait=wait_random_exponential(multiplier=0.05, max=1.0),
                retry=retry_if_exception_type((Unsent, Unanswered)),
                reraise=True,
            ):
                with attempt:
                    return tries.told(await tries.note(self.once(ask)))
        raise tries.ended()

    def _waiting(self, wait_s: float) -> httpx.Timeout:
        patience = self._patience
        return httpx.Timeout(patience.answer_s, connect=patience.connect_s, read=wait_s + patience.answer_s)


class Tries:
    """What is known of one request that may have been sent several times."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._in_doubt = False

    async def note(self, trying: Any) -> Any:
        """One more try. Once its outcome is unknown, a request that is for once only has ended."""
        try:
            return await trying
        except Unanswered as error:
            if self._ask.repeat is Repeat.ONCE:
                raise OutcomeUnknown from error
            self._in_doubt = self._ask.repeat is Repeat.SAME
            raise
        except HQError as error:
            raise self._judged(error) from error.__cause__

    def told(self, reply: Any) -> Any:
        """The reply; if it is one for each of many, the same is true of each."""
        if isinstance(reply, list):
            return [self._judged(one) if isinstance(one, HQError) else one for one in reply]
        return reply

    def ended(self) -> HQError:
        """What to say when no answer came in all the time."""
        return OutcomeUnknown() if self._in_doubt else Unreachable()

    def _judged(self, error: HQError) -> HQError:
        """A refusal may be of what the first try has done already: then nobody knows."""
        if not self._in_doubt or isinstance(error, self._ask.certain):
            return error
        return OutcomeUnknown(
            f"an earlier try had no answer, and now hq says: {error} Look before you repeat it."
        )
