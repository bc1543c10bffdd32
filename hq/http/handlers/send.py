"""Enqueue: the body as it is, or JSON messages, one or many."""

from __future__ import annotations

from base64 import b64decode
from functools import partial
from typing import Any

from msgspec import UNSET, Raw

from hq.domain.commands import Enqueue
from hq.domain.messages import PLAIN_JSON, Options
from hq.errors import InvalidInput
from hq.http import models as m
from hq.http import wire
from hq.http.calls import Call
from hq.http.handlers.many import ask_all, body_shape, results
from hq.http.handlers.settings import retry_policy
from hq.http.replies import Reply, ok

BYTES = "application/octet-stream"
JSON = "application/json"
# What curl and browsers say of a body when they were told nothing.
SAYS_NOTHING = "application/x-www-form-urlencoded"
NOTHING_SAID = (UNSET,) * 3 + (None,) * 12


async def enqueue(call: Call) -> Reply:
    """The body is the payload; what it is, is declared by its content type or seen from it."""
    number = call.line.number(call.queue)
    command = Enqueue(call.body, _options(call))
    reply = await call.line.node.post(number, command)
    return ok(_accepted(call, number, reply))


async def enqueue_json(call: Call) -> Reply:
    """One message, an array of them, or one in each line."""
    number = call.line.number(call.queue)
    shape = body_shape(call)
    if shape == "one":
        new = wire.decode(call.body, m.NewMessage, call.depth)
        reply = await call.line.node.post(number, _command(call, new, call.headers.get(b"idempotency-key")))
        return ok(_accepted(call, number, reply), 201)

    if b"idempotency-key" in call.headers:
        raise InvalidInput("an Idempotency-Key is for one message: give each of many its own dedup_key")
    told = await ask_all(call, number, m.NewMessage, partial(_command, call))
    return ok(results(told, partial(_accepted, call, number)))


def _accepted(call: Call, number: int, reply: Any) -> m.Accepted:
    message_id = call.node.id_text(number, reply.message)
    return m.Accepted(id=message_id, message_id=message_id, duplicate=reply.duplicate)


def _options(call: Call) -> Options:
    content_type = call.content_type
    if content_type is None or content_type.startswith(SAYS_NOTHING):
        content_type = JSON if wire.is_json(call.body, call.depth) else BYTES
    elif wire.declares_json(content_type):
        wire.check_json(call.body, call.depth)
    query = call.query
    key = _one_key(query.dedup_key, query.idempotency_key, call.headers.get(b"idempotency-key"))
    said = {name: value for name in query.__struct_fields__ if (value := getattr(query, name)) is not UNSET}
    said.pop("idempotency_key", None)
    said["dedup_key"] = key
    if len(said) == 1 and key is None:
        return PLAIN_JSON if content_type == JSON else Options(content_type=content_type)
    return Options(content_type=content_type, **said)


def _command(call: Call, new: m.NewMessage, header: bytes | None = None) -> Enqueue:
    """An envelope as a command; the header is the key of one that came alone."""
    if header is None and isinstance(new.payload, Raw) and _is_plain(new):
        return Enqueue(bytes(new.payload), PLAIN_JSON)
    key = _one_key(new.dedup_key, new.idempotency_key, header)
    payload, content_type = payload_of(new, call.depth)
    options = Options(
        content_type, () if new.headers is UNSET else tuple(new.headers.items()), new.priority, new.group,
        new.concurrency_key, key, new.dedup_ms, new.delay_ms, new.ttl_ms, new.max_attempts, new.lease_ms,
        None if new.retry is None else retry_policy(new.retry), new.result_ms,
    )  # fmt: skip
    return Enqueue(payload, options)


def _is_plain(new: m.NewMessage) -> bool:
    """Whether it has nothing but its payload, as most."""
    said = (
        new.payload_base64, new.content_type, new.headers, new.priority, new.group, new.concurrency_key,
        new.dedup_key, new.idempotency_key, new.dedup_ms, new.delay_ms, new.ttl_ms, new.max_attempts,
        new.lease_ms, new.retry, new.result_ms,
    )  # fmt: skip
    return said == NOTHING_SAID


def payload_of(new: m.NewMessage | m.NewSchedule, depth: int) -> tuple[bytes, str]:
    """The payload of an envelope and its content type."""
    if isinstance(new.payload, Raw) and new.payload_base64 is UNSET:
        content_type = JSON if new.content_type is UNSET else new.content_type
        if not wire.declares_json(content_type):
            raise InvalidInput("a payload that is no JSON is sent as payload_base64")
        return bytes(new.payload), content_type
    if new.payload is UNSET and isinstance(new.payload_base64, str):
        try:
            payload = b64decode(new.payload_base64, validate=True)
        except ValueError:
            raise InvalidInput("payload_base64 is no base64") from None
        content_type = BYTES if new.content_type is UNSET else new.content_type
        if wire.declares_json(content_type):
            wire.check_json(payload, depth)
        return payload, content_type
    raise InvalidInput("a message has either payload or payload_base64")


def _one_key(*said: Any) -> str | None:
    """The dedup key, by whichever of its names it came; all that are given must agree."""
    keys = {_text(key) for key in said if key is not UNSET and key is not None}
    if len(keys) > 1:
        raise InvalidInput("the dedup key is given twice, and differs")
    if "" in keys:
        raise InvalidInput("a dedup key has at least one character")
    return keys.pop() if keys else None


def _text(key: str | bytes) -> str:
    try:
        return key if isinstance(key, str) else key.decode()
    except UnicodeDecodeError:
        raise InvalidInput("the Idempotency-Key is no UTF-8") from None
