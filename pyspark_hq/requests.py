"""Requests to a server: one connection, and patience with a server that is gone for a while.

Every request of a job may be made twice: reads change nothing, and what is written has a dedup key.
"""

from __future__ import annotations

import json
import time
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from pyspark_hq.errors import OptionInvalid, Refused, Unreachable
from pyspark_hq.options import Options

TIMEOUT_S = 60.0
FIRST_WAIT_S = 0.05
LONGEST_WAIT_S = 2.0
_SUCCESS = 2
# What a server, or a gateway before it, says when it may well say something else a moment later.
_FOR_NOW = {429, 502, 503, 504}


class Answer(NamedTuple):
    """A successful answer: its body, and how far it reaches if it says so."""

    body: bytes
    reached: int

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Wait:
    """How long to wait before the next try: longer every time, until patience is at its end."""

    def __init__(self, patience_ms: int) -> None:
        self._until = time.monotonic() + patience_ms / 1_000
        self._next_s = FIRST_WAIT_S

    def once(self) -> bool:
        """Wait; false if there is no time left to."""
        left = self._until - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(self._next_s, left))
        self._next_s = min(self._next_s * 2, LONGEST_WAIT_S)
        return True


class Requests:
    """One connection to a server."""

    def __init__(self, options: Options, patience_ms: int) -> None:
        self.url = options.url.rstrip("/")
        where = urlsplit(self.url)
        if not where.hostname:
            raise OptionInvalid(f"url {options.url!r} names no server")
        kind = HTTPSConnection if where.scheme == "https" else HTTPConnection
        try:
            self._connection = kind(where.hostname, where.port, timeout=TIMEOUT_S)
        except ValueError as error:
            raise OptionInvalid(f"url {options.url!r} cannot be read: {error}") from error
        self._prefix = where.path
        self._patience_ms = patience_ms
        token = options.secret()
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def get(self, path: str, query: dict[str, Any] | None = None, accept: str = "application/json") -> Answer:
        """What is there."""
        said = {name: value for name, value in (query or {}).items() if value is not None}
        where = f"{path}?{urlencode(said)}" if said else path
        return self._tried("GET", where, None, {"Accept": accept})

    def post(self, path: str, body: bytes) -> Answer:
        """What the server says to a JSON body."""
        return self._tried("POST", path, body, {"Content-Type": "application/json"})

    def put(self, path: str, body: bytes) -> Answer:
        """What the server says to a JSON body that can be said twice."""
        return self._tried("PUT", path, body, {"Content-Type": "application/json"})

    def close(self) -> None:
        """Let go of the connection; the next request makes another."""
        self._connection.close()

    def _tried(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        wait = Wait(self._patience_ms)
        while True:
            try:
                return self._once(method, path, body, headers)
            except (OSError, HTTPException) as error:
                self._connection.close()
                trouble = Unreachable(f"hq at {self.url} cannot be reached: {_named(error)}")
            except _ForNow as error:
                trouble = Unreachable(f"hq at {self.url} cannot serve at present: {error}")
            if not wait.once():
                raise trouble

    def _once(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        self._connection.request(method, self._prefix + path, body, {**self._headers, **headers})
        response = self._connection.getresponse()
        content = response.read()
        if response.status // 100 == _SUCCESS:
            return Answer(content, int(response.headers.get("hq-reached", 0)))
        raise self._refusal(response, content)

    def _refusal(self, response: HTTPResponse, content: bytes) -> Exception:
        try:
            problem = json.loads(content)
            code, detail = str(problem["code"]), str(problem["detail"])
        except (ValueError, LookupError, TypeError):
            if response.status in _FOR_NOW:
                return _ForNow(f"HTTP {response.status}")
            return Refused(f"{self.url} does not answer as hq does (HTTP {response.status}): check the url")
        if response.status in _FOR_NOW and code != "schema_too_new":
            return _ForNow(detail)
        return Refused(f"hq at {self.url} refuses: {detail} ({code})", code)


class _ForNow(Exception):
    """A refusal to wait for."""


def _named(error: Exception) -> str:
    return str(error) or type(error).__name__
