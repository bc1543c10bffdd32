"""The first seed (ckampfe/hq): queues by query parameters, JSON messages, settled by their ids.

What there is not is told by null or by silence, and refusals are texts.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec

from hq.backends.port import QueueRow
from hq.domain.commands import Complete, Dates, Enqueue, Fail, Receive
from hq.domain.ids import MessageId
from hq.domain.messages import PLAIN_JSON
from hq.domain.names import queue_name
from hq.domain.replies import Delivery
from hq.domain.settings import Settings
from hq.errors import (
    InvalidInput,
    LeaseExpired,
    LeaseNotHeld,
    MessageNotFound,
    QueueNotFound,
)
from hq.http import wire
from hq.http.calls import Api, Call, Headers
from hq.http.dialects.clock_text import timestamp
from hq.http.dialects.dialect import Dialect, in_words, nothing
from hq.http.dialects.hq_page import page
from hq.http.problems import Refused
from hq.http.replies import NULL, Reply, ok
from hq.http.routes import Route, Scope

SECOND_MS = 1_000
SETTINGS = Settings(max_payload_bytes=2 << 20)
"""Of a queue that is made here, beside the two it is made with: the largest body is the seed's."""
_sorted = msgspec.json.Encoder(order="sorted").encode
_DONE = nothing(200)


class OutOfRange(Refused):
    """A setting is out of its range."""

    code = "invalid_input"
    status = 422


class NameTaken(Refused):
    """There is a queue of this name."""

    code = "queue_exists"
    status = 409


class UpdateQuery(msgspec.Struct, kw_only=True):
    """What may be changed of a queue."""

    max_attempts: int | None = None
    visibility_timeout_seconds: int | None = None


class CreateQuery(msgspec.Struct, kw_only=True):
    """What a queue is made with."""

    name: str
    max_attempts: int
    visibility_timeout_seconds: int


class QueueShown(msgspec.Struct):
    """A queue as its clients know it."""

    name: str
    max_attempts: int | None
    visibility_timeout_seconds: int
    inserted_at: str
    updated_at: str


async def create(call: Call) -> Reply:
    """Make a queue of a new name."""
    query = call.query
    settings = _changed(SETTINGS, query)
    name = _name(query.name)
    call.line.guard.check()
    async with call.line.configuring:
        if any(row.name == name for row in await call.line.node.queues()):
            raise NameTaken(f"there is a queue of the name {name}")
        row = await call.line.node.create(name, settings)
    # Its first use is its birth.
    await call.line.node.post(row.number, Dates())
    return _DONE


async def list_all(call: Call) -> Reply:
    """All queues by name."""
    call.line.guard.check()
    rows = sorted(await call.line.node.queues(), key=lambda row: row.name)
    return ok([await _shown(call, row) for row in rows])


async def show(call: Call) -> Reply:
    """One queue, or null."""
    call.line.guard.check()
    try:
        return ok(await _shown(call, call.node.directory.row(call.queue)))
    except QueueNotFound:
        return NULL


async def update(call: Call) -> Reply:
    """Change what is said of a queue, if there is one."""
    _changed(SETTINGS, call.query)
    call.line.guard.check()
    with suppress(QueueNotFound):
        async with call.line.configuring:
            row = call.node.directory.row(call.queue)
            settings = _changed(row.settings, call.query)
            if settings != row.settings:
                await call.line.node.configure(call.queue, settings)
    return _DONE


async def delete(call: Call) -> Reply:
    """Delete a queue with all it holds, if there is one."""
    call.line.guard.check()
    with suppress(QueueNotFound):
        await call.line.node.drop(call.queue)
    return _DONE


async def enqueue(call: Call) -> Reply:
    """The body is JSON, whatever is declared of it."""
    _decoded(call.body, call.depth)
    number = call.line.number(call.queue)
    reply = await call.line.node.post(number, Enqueue(call.body, PLAIN_JSON))
    return ok({"message_id": str(call.node.id_of(number, reply.message))})


async def receive(call: Call) -> Reply:
    """One message, or null."""
    try:
        number = call.line.number(call.queue)
        deliveries: list[Delivery] = await call.node.receive(call.queue, Receive(), 0)
    except QueueNotFound:
        return NULL
    if not deliveries:
        return NULL
    [delivery] = deliveries
    message_id = str(call.node.id_of(number, delivery.message))
    said = {
        "id": message_id,
        "args": msgspec.Raw(arguments(delivery.payload)),
        "queue": call.queue,
        "attempts": delivery.attempts,
    }
    return ok(said)


async def complete(call: Call) -> Reply:
    """The work is done, if it was under way."""
    return await _settle(call, Complete)


async def fail(call: Call) -> Reply:
    """Never again, if it was under way."""
    return await _settle(call, Fail)


def arguments(payload: bytes) -> bytes:
    """A payload as JSON with sorted names; what is no JSON, by another way into the queue, as a text."""
    try:
        return _sorted(msgspec.json.decode(payload))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _sorted(payload.decode(errors="replace"))


async def _settle(call: Call, build: Callable[[int], Complete | Fail]) -> Reply:
    try:
        uuid.UUID(call.path["id"])
    except ValueError:
        raise InvalidInput("a message id is a UUID") from None
    call.line.guard.check()
    with suppress(QueueNotFound, MessageNotFound, LeaseNotHeld, LeaseExpired):
        message_id = MessageId.parse(call.path["id"])
        sequence = call.line.sequence_of(message_id.queue, message_id)
        await call.line.node.post(message_id.queue, build(sequence))
    return _DONE


def _decoded(body: bytes, depth: int) -> None:
    """Refuse what could not be told again: all of it is read, not only its shape."""
    wire.check_depth(body, depth)
    try:
        _sorted(msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInput(f"the body is no JSON: {error}") from None


def _changed(settings: Settings, query: Any) -> Settings:
    """These settings with what the query says; the name of what is wrong comes first."""
    attempts, seconds = query.max_attempts, query.visibility_timeout_seconds
    for name, value in (("max_attempts", attempts), ("visibility_timeout_seconds", seconds)):
        if value is not None and value < 1:
            raise OutOfRange(f"{name} must be at least 1")
    try:
        if attempts is not None:
            settings = replace(settings, max_attempts=attempts)
        return settings if seconds is None else replace(settings, lease_ms=seconds * SECOND_MS)
    except InvalidInput as error:
        # The second setting, in milliseconds, has a name of hq's own.
        raise OutOfRange(str(error).replace("lease_ms", "visibility_timeout_seconds x 1000")) from None


def _name(text: str) -> str:
    try:
        return queue_name(text)
    except InvalidInput as error:
        raise OutOfRange(f"name: {error}") from None


async def _shown(call: Call, row: QueueRow) -> QueueShown:
    used = await call.line.node.post(row.number, Dates())
    seconds = row.settings.lease_ms // SECOND_MS
    return QueueShown(
        row.name, row.settings.max_attempts, seconds, timestamp(used.used_at), timestamp(used.changed_at)
    )


def _refuse(_: Api, refusal: Refused, __: bytes, ___: Headers) -> Reply:
    return in_words(refusal, 0)


HQ = Dialect("hq", "/hq", in_words, _refuse)

_ANY: dict[str, Any] = {"query": bytes, "dialect": HQ}
ROUTES = [
    Route("POST", "/queues", Scope.MANAGE, create, "Create a queue", CreateQuery, writes=True, dialect=HQ),
    Route("GET", "/queues", Scope.READ, list_all, "List queues", reply=list[QueueShown], **_ANY),
    Route("GET", "/queues/{queue}", Scope.READ, show, "Show a queue", reply=QueueShown | None, **_ANY),
    Route("PUT", "/queues/{queue}", Scope.MANAGE, update, "Change a queue", UpdateQuery, writes=True,
          dialect=HQ),
    Route("DELETE", "/queues/{queue}", Scope.MANAGE, delete, "Delete a queue", writes=True, **_ANY),
    Route("POST", "/queues/{queue}/enqueue", Scope.ENQUEUE, enqueue, "Enqueue", body=bytes, express=True,
          writes=True, **_ANY),
    Route("GET", "/queues/{queue}/receive", Scope.RECEIVE, receive, "Receive", express=True, **_ANY),
    Route("PUT", "/messages/{id}/complete", Scope.RECEIVE, complete, "Complete", express=True, writes=True,
          **_ANY),
    Route("PUT", "/messages/{id}/fail", Scope.RECEIVE, fail, "Fail", express=True, writes=True, **_ANY),
    Route("GET", "/web", Scope.READ, page, "The latest messages, for people", reply="text/html", **_ANY),
]  # fmt: skip
