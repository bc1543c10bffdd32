"""From a request to its reply: the query, the guards, the handler, and one shape for whatever goes wrong.

Both lanes come here, so that an answer does not depend on the way it took.
"""

from __future__ import annotations

import asyncio
import re
from functools import cache
from time import perf_counter
from typing import Any, get_args
from urllib.parse import parse_qsl

import msgspec

from hq.errors import HQError, InvalidInput, OutcomeUnknown
from hq.http.calls import Api, Call, Headers
from hq.http.guards import GUARDS
from hq.http.problems import RequestTimeout, internal_error
from hq.http.replies import Reply
from hq.http.routes import Route

_INTEGER = re.compile(r"-?[0-9]+")
_defaults: dict[type[Any], Any] = {}


async def answer(  # noqa: PLR0913, PLR0917 - a request is that much
    api: Api, route: Route, path: dict[str, str], query: bytes, headers: Headers, body: bytes
) -> Reply:
    """The reply to a request, counted; it never raises but for being cancelled."""
    started = perf_counter()
    try:
        for guard in GUARDS:
            guard(api, route, headers)
        call = Call(api, path, _query(route, query), headers, body)
        if api.terms.request_timeout_s is None:
            reply = await route.handler(call)
        else:
            reply = await _timed(route, call, api.terms.request_timeout_s)
    except HQError as error:
        reply = route.tell(error, api.line.node.clock.now)
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets an answer
        reply = internal_error(error)
    api.metrics.count(route.method, route.address, reply.status, perf_counter() - started)
    return reply


async def _timed(route: Route, call: Call, seconds: float) -> Reply:
    try:
        async with asyncio.timeout(seconds):
            return await route.handler(call)
    except TimeoutError:
        raise OutcomeUnknown if route.writes else RequestTimeout from None


def _query(route: Route, text: bytes) -> Any:
    kind: Any = route.query
    if kind is bytes:
        return text
    if not text:
        return _default(kind)
    try:
        pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, max_num_fields=100, errors="strict")
        said = dict(pairs)
        if len(said) != len(pairs):
            raise InvalidInput("a query parameter is given twice")
        # msgspec would take 1e3 and 1.0 for integers.
        for name in _integers(kind) & said.keys():
            if not _INTEGER.fullmatch(said[name]):
                raise InvalidInput(f"{name} must be an integer")
        return msgspec.convert(said, kind, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"the query does not fit: {error}") from None
    except ValueError as error:
        raise InvalidInput(f"the query cannot be read: {error}") from None


@cache
def _integers(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The parameters that are integers."""
    return frozenset(
        field.name for field in msgspec.structs.fields(kind) if int in (field.type, *get_args(field.type))
    )


def _default(kind: type[Any]) -> Any:
    """The query of a request that has none, made once."""
    found = _defaults.get(kind)
    if found is None:
        try:
            found = _defaults[kind] = msgspec.convert({}, kind)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"the query does not fit: {error}") from None
    return found
