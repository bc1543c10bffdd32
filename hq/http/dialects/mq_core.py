"""MQ-Core (softlayer/mq): a queue is a path, a message is any bytes, fetching hides it for a while.

Any status but 404 leaves nothing to say, so answers are empty but for 503, which tells why.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from hq.domain.commands import Delete, Enqueue, Receive
from hq.domain.ids import MessageId
from hq.domain.messages import PLAIN
from hq.domain.names import queue_name
from hq.domain.replies import Delivery
from hq.domain.settings import MAX_PAYLOAD_BYTES, Settings
from hq.errors import HQError, InvalidInput, MessageNotFound, QueueExists, QueueNotFound
from hq.http.calls import Api, Call, Headers
from hq.http.dialects.dialect import Dialect, in_words, nothing
from hq.http.problems import Refused, status_of
from hq.http.replies import Reply
from hq.http.routes import Route, Scope

SETTINGS = Settings(max_attempts=None, lease_ms=10_000, max_payload_bytes=MAX_PAYLOAD_BYTES)
"""Of a queue that is made here: a message comes again every ten seconds, for ever, as its movers have it."""
RETRY_AFTER = ((b"retry-after", b"10"),)
_ID = re.compile(r"[a-z0-9-]+")
_TYPE = re.compile(r"[ -~]+")


async def create(call: Call) -> Reply:
    """Make a queue, or find it, whatever its settings are."""
    call.line.guard.check()
    with suppress(QueueExists):
        await call.line.node.create(queue_name(call.queue), SETTINGS)
    return nothing(201)


async def show(call: Call) -> Reply:
    """Whether there is such a queue."""
    call.line.number(call.queue)
    return nothing(200)


async def delete_queue(call: Call) -> Reply:
    """Delete a queue with all it holds, if there is one."""
    call.line.guard.check()
    with suppress(QueueNotFound):
        await call.line.node.drop(queue_name(call.queue))
    return nothing(200)


async def post(call: Call) -> Reply:
    """Add a message."""
    number = call.line.number(call.queue)
    reply = await call.line.node.post(number, Enqueue(call.body, PLAIN))
    return nothing(201)._replace(headers=_message_id(call, number, reply.message))


async def fetch(call: Call) -> Reply:
    """The next message; it comes again if it is not deleted in time."""
    try:
        number = call.line.number(call.queue)
        deliveries: list[Delivery] = await call.node.receive(call.queue, Receive(), 0)
    except QueueNotFound:
        return nothing(204)
    if not deliveries:
        return nothing(204)
    [delivery] = deliveries
    declared = delivery.options.content_type
    content_type = declared if _TYPE.fullmatch(declared) else PLAIN.content_type
    return Reply(200, delivery.payload, content_type, _message_id(call, number, delivery.message))


async def delete(call: Call) -> Reply:
    """Take a message out, wherever it is; one that is not there is out."""
    text = call.path["id"]
    if not _ID.fullmatch(text):
        raise InvalidInput("a message id has small letters, digits and hyphens")
    with suppress(QueueNotFound, MessageNotFound):
        number = call.line.number(call.queue)
        await call.line.node.post(number, Delete(_sequence_of(call, number, text)))
    return nothing(202)


def _sequence_of(call: Call, number: int, text: str) -> int:
    try:
        return call.line.sequence_of(number, MessageId.parse(text))
    except InvalidInput:
        raise MessageNotFound from None


def _message_id(call: Call, number: int, message: int) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"x-message-id", str(call.node.id_of(number, message)).encode()),)


def _tell(error: HQError, now: int) -> Reply:
    status = status_of(error)
    if status in {429, 503}:
        # Its clients know one way to be told that a message is not stored, or that nobody knows.
        return in_words(error, now)._replace(status=503, headers=RETRY_AFTER)
    if status == 405 or isinstance(error, InvalidInput):
        return nothing(404)
    return nothing(status)


def _refuse(_: Api, refusal: Refused, __: bytes, ___: Headers) -> Reply:
    return _tell(refusal, 0)


MQ_CORE = Dialect("mq-core", "/mq", _tell, _refuse)

_ANY: dict[str, Any] = {"query": bytes, "dialect": MQ_CORE}
ROUTES = [
    Route("PUT", "/{queue}", Scope.MANAGE, create, "Create a queue", status=201, writes=True, **_ANY),
    Route("GET", "/{queue}", Scope.READ, show, "Whether there is a queue", **_ANY),
    Route("DELETE", "/{queue}", Scope.MANAGE, delete_queue, "Delete a queue", writes=True, **_ANY),
    Route("POST", "/{queue}/messages", Scope.ENQUEUE, post, "Add a message", body=bytes, reply=None,
          status=201, express=True, writes=True, **_ANY),
    Route("GET", "/{queue}/messages", Scope.RECEIVE, fetch, "Fetch a message", reply=bytes, express=True,
          **_ANY),
    # Whoever receives a message is who deletes it: there is no other way to say that it is done.
    Route("DELETE", "/{queue}/messages/{id}", Scope.RECEIVE, delete, "Delete a message", status=202,
          express=True, writes=True, **_ANY),
]  # fmt: skip
