"""cl-sqs (carlosganzerla/cl-sqs): one path, four methods, groups, and receipts.

All of it is one queue of hq. Checks come in the order of the seed: the query can be read, the path, the key,
the method, the parameters.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from hmac import compare_digest
from typing import Any
from urllib.parse import unquote_to_bytes

from hq.domain.commands import Complete, Enqueue, Extend, Receive
from hq.domain.messages import MAX_NAME_CHARS, Options
from hq.domain.replies import Delivery
from hq.domain.settings import MAX_PAYLOAD_BYTES, DedupScope, Settings, in_range
from hq.domain.tokens import FEWEST_TOKEN_BYTES
from hq.errors import (
    HQError,
    InvalidInput,
    LeaseExpired,
    LeaseNotHeld,
    MessageNotFound,
    QueueExists,
    QueueNotFound,
)
from hq.http.calls import Api, Call, Headers
from hq.http.dialects.dialect import Dialect, in_words
from hq.http.dialects.receipts import is_receipt, lease_of, receipt_of
from hq.http.problems import NoSuchRoute, Refused, status_of
from hq.http.replies import Reply
from hq.http.routes import Route, Scope

QUEUE = "cl-sqs"
SETTINGS = Settings(
    max_attempts=None, lease_ms=60_000, dedup_scope=DedupScope.GROUP, max_payload_bytes=MAX_PAYLOAD_BYTES
)
"""Of the queue: a head is tried for ever, and a key is free when its message is gone (`dedup_ms` is 0)."""
TEXT = "text/plain"
MAX_PARAMETERS = 100
DEFAULT_TIMEOUT_S = 60
MAX_TIMEOUT_S = 86_400
_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})").search
_INTEGER = re.compile(r" *[+-]?[0-9]{1,18} *").fullmatch


class WrongKey(Refused):
    """The header api-key has another key, or none."""

    code = "unauthorized"
    status = 401


async def enqueue(call: Call) -> Reply:
    """Add a message to a group, unless the group has one of this deduplication id."""
    said = _said(call, "group-id", "deduplication-id")
    group = _text(said, "group-id")
    if group is None:
        raise InvalidInput("group-id is missing")
    if b"content-length" not in call.headers:
        raise InvalidInput("the length of the payload is missing")
    key = _text(said, "deduplication-id")
    if key is None:
        key = hashlib.sha256(call.body).hexdigest()
    number = await _number(call)
    options = Options(content_type=TEXT, group=group, dedup_key=key)
    reply = await call.line.node.post(number, Enqueue(call.body, options))
    if reply.duplicate:
        return _nothing()
    told = (
        (b"message-id", _id(call, number, reply.message)),
        (b"message-md5", hashlib.md5(call.body, usedforsecurity=False).hexdigest().encode()),
        (b"message-timestamp", timestamp(reply.enqueued_at, reply.message)),
    )
    return Reply(200, b"", TEXT, told)


async def dequeue(call: Call) -> Reply:
    """The oldest of the heads that can be seen."""
    said = _said(call, "visibility-timeout")
    timeout_s = _timeout(said, DEFAULT_TIMEOUT_S)
    try:
        number = call.line.number(QUEUE)
        command = Receive(1, timeout_s * 1_000, token_bytes=FEWEST_TOKEN_BYTES)
        deliveries: list[Delivery] = await call.node.receive(QUEUE, command, 0)
    except QueueNotFound:
        return _nothing()
    if not deliveries:
        return _nothing()
    [delivery] = deliveries
    told = (
        (b"message-id", _id(call, number, delivery.message)),
        (b"message-receipt-id", receipt_of(delivery.message, delivery.token).encode()),
        (b"message-timestamp", timestamp(delivery.enqueued_at, delivery.message)),
    )
    return Reply(200, delivery.payload, TEXT, told)


async def delete(call: Call) -> Reply:
    """The message is done."""
    said = _said(call, "receipt-id")
    return await _settle(call, _receipt(said), Complete)


async def change_visibility(call: Call) -> Reply:
    """A new end of the lease, counted from now."""
    said = _said(call, "receipt-id", "visibility-timeout")
    receipt, timeout_s = _receipt(said), _timeout(said, None)
    return await _settle(call, receipt, lambda message, token: Extend(message, token, timeout_s * 1_000))


def timestamp(enqueued_at: int, sequence: int) -> bytes:
    """Microseconds, none told twice: later messages have later sequences, and no earlier time."""
    return str(enqueued_at * 1_000 + sequence).encode()


async def _settle(call: Call, receipt: str, build: Callable[[int, bytes], Complete | Extend]) -> Reply:
    lease = lease_of(receipt)
    if lease is None:
        return _nothing()
    with suppress(QueueNotFound, MessageNotFound, LeaseNotHeld, LeaseExpired):
        number = call.line.number(QUEUE)
        reply = await call.line.node.post(number, build(*lease))
        return Reply(200, b"", TEXT, ((b"message-id", _id(call, number, reply.message)),))
    return _nothing()


async def _number(call: Call) -> int:
    """The number of the queue, which is made when it is first written to."""
    try:
        return call.line.number(QUEUE)
    except QueueNotFound:
        with suppress(QueueExists):
            await call.line.node.create(QUEUE, SETTINGS)
        return call.line.number(QUEUE)


def _id(call: Call, number: int, sequence: int) -> bytes:
    return str(call.node.id_of(number, sequence)).encode()


def _nothing() -> Reply:
    return Reply(204, b"")


def _said(call: Call, *known: str) -> dict[str, str]:
    """The parameters by their names; whatever else is said is refused."""
    pairs = _pairs(call.query)
    _check_key(call.api, call.headers)
    said: dict[str, str] = {}
    for name, value in pairs:
        if value is None or name.lower() not in known:
            raise InvalidInput(f"there is no such parameter here: {name!r}")
        said.setdefault(name.lower(), value)
    return said


def _pairs(query: bytes) -> list[tuple[str, str | None]]:
    """The names and values of a query; a name without = has none."""
    if not query:
        return []
    if _ESCAPE(query):
        raise InvalidInput("the query has a % that begins no escape")
    parts = query.split(b"&", MAX_PARAMETERS)
    if len(parts) > MAX_PARAMETERS:
        raise InvalidInput(f"the query has more than {MAX_PARAMETERS} parameters")
    try:
        return [_pair(part) for part in parts if part]
    except UnicodeDecodeError:
        raise InvalidInput("the query is no UTF-8") from None


def _pair(part: bytes) -> tuple[str, str | None]:
    name, equals, value = part.replace(b"+", b" ").partition(b"=")
    return unquote_to_bytes(name).decode(), unquote_to_bytes(value).decode() if equals else None


def _check_key(api: Api, headers: Headers) -> None:
    key = api.terms.cl_sqs_key
    if key is not None and not compare_digest(headers.get(b"api-key", b""), key.encode()):
        raise WrongKey


def _text(said: dict[str, str], name: str) -> str | None:
    text = said.get(name)
    if text is not None and len(text) > MAX_NAME_CHARS:
        raise InvalidInput(f"{name} has at most {MAX_NAME_CHARS} characters")
    return text


def _receipt(said: dict[str, str]) -> str:
    receipt = said.get("receipt-id", "")
    if not is_receipt(receipt):
        raise InvalidInput("receipt-id must be a UUID in small letters")
    return receipt


def _timeout(said: dict[str, str], default: int | None) -> int:
    text = said.get("visibility-timeout", "" if default is None else str(default))
    if not _INTEGER(text):
        raise InvalidInput("visibility-timeout must be an integer")
    in_range("visibility-timeout", int(text), 0, MAX_TIMEOUT_S)
    return int(text)


def _tell(error: HQError, now: int) -> Reply:
    status = status_of(error)
    if isinstance(error, InvalidInput):
        status = 422
    elif status in {429, 503}:
        # Its clients know one way to be told that a server cannot.
        status = 500
    return in_words(error, now)._replace(status=status)


def _refuse(api: Api, refusal: Refused, query: bytes, headers: Headers) -> Reply:
    """In the order of the checks: the query, the path, the key, the method."""
    try:
        _pairs(query)
        if not isinstance(refusal, NoSuchRoute):
            _check_key(api, headers)
    except (InvalidInput, WrongKey) as error:
        return _tell(error, 0)
    return _tell(refusal, 0)


CL_SQS = Dialect("cl-sqs", "/cl-sqs", _tell, _refuse)

_QUEUE: dict[str, Any] = {"query": bytes, "express": True, "dialect": CL_SQS}
ROUTES = [
    Route("POST", "/queue", Scope.ENQUEUE, enqueue, "Enqueue", body=bytes, writes=True, **_QUEUE),
    Route("GET", "/queue", Scope.RECEIVE, dequeue, "Dequeue", reply=bytes, **_QUEUE),
    Route("DELETE", "/queue", Scope.RECEIVE, delete, "Delete", writes=True, **_QUEUE),
    Route("PATCH", "/queue", Scope.RECEIVE, change_visibility, "Change visibility", writes=True, **_QUEUE),
]
