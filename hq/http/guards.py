"""What every request must pass before its handler sees it, in either lane."""

from __future__ import annotations

from collections.abc import Callable

from hq.http.calls import Api, Headers
from hq.http.problems import CrossOrigin, UnsupportedMediaType
from hq.http.routes import Route

Guard = Callable[[Api, Route, Headers], None]


def refuse_encodings(_: Api, __: Route, headers: Headers) -> None:
    """A compressed body could be a bomb, and a queue keeps bytes as they are."""
    encoding = headers.get(b"content-encoding")
    if encoding is not None and encoding.strip().lower() not in {b"", b"identity"}:
        raise UnsupportedMediaType("send the body as it is: Content-Encoding is not supported")


def refuse_other_origins(api: Api, _: Route, headers: Headers) -> None:
    """A page that a browser loaded elsewhere may not use a server that only its user can reach."""
    origin = headers.get(b"origin")
    if origin is None:
        return
    host = headers.get(b"host", b"")
    if origin.partition(b"://")[2] != host and origin.decode("latin-1") not in api.terms.origins:
        raise CrossOrigin


GUARDS: tuple[Guard, ...] = (refuse_encodings, refuse_other_origins)
