"""Messages as JSON."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from hq.domain.messages import Attempt, Message, Options
from hq.domain.replies import Delivery
from hq.domain.request_keys import producers_key
from hq.http import models as m
from hq.http import wire
from hq.http.calls import Call

JSON = "application/json"
UTF_8 = {"utf-8", "utf8", "us-ascii"}


def received(call: Call, queue: str, number: int, delivery: Delivery) -> m.Received:
    """A message that the caller now holds; said field by field, for this is on the path of every receive."""
    options = delivery.options
    payload, payload_base64 = _payload(options.content_type, delivery.payload)
    return m.Received(
        id=str(call.line.id_of(number, delivery.message)),
        queue=queue,
        token=delivery.token.hex(),
        payload=payload,
        payload_base64=payload_base64,
        content_type=options.content_type,
        headers=dict(options.headers) if options.headers else UNSET,
        priority=options.priority,
        group=options.group,
        concurrency_key=options.concurrency_key,
        dedup_key=producers_key(options.dedup_key),
        attempts=delivery.attempts,
        receives=delivery.receives,
        enqueued_at=delivery.enqueued_at,
        lease_expires_at=delivery.lease_expires_at,
        origin_id=delivery.origin_id,
        history=_history(delivery.history),
        progress=UNSET if delivery.progress is None else Raw(delivery.progress),
        result_ms=options.result_ms,
    )


def shown(call: Call, queue: str, number: int, message: Message, state: str) -> m.Shown:
    """A message that the caller only looks at."""
    assert message.payload is not None, "a look brings the payload"
    return m.Shown(
        id=str(call.line.id_of(number, message.sequence)),
        queue=queue,
        state=state,
        attempts=message.attempts,
        receives=message.receives,
        enqueued_at=message.enqueued_at,
        available_at=message.available_at,
        expires_at=message.expires_at,
        failed_at=message.failed_at or UNSET,
        reason=message.reason,
        error=message.error,
        origin_id=message.origin_id,
        holder=message.holder,
        history=_history(message.history),
        progress=UNSET if message.progress is None else Raw(message.progress),
        lease_expires_at=message.lease_expires_at if state == "leased" else UNSET,
        **said(message.options, message.payload),
    )


def said(options: Options, payload: bytes) -> dict[str, Any]:
    """What the producer said."""
    body, in_base64 = _payload(options.content_type, payload)
    fields: dict[str, Any] = {
        "content_type": options.content_type,
        "payload": body,
        "payload_base64": in_base64,
    }
    if options.headers:
        fields["headers"] = dict(options.headers)
    rarely = {
        "priority": options.priority,
        "group": options.group,
        "concurrency_key": options.concurrency_key,
        "dedup_key": producers_key(options.dedup_key),
        "result_ms": options.result_ms,
    }
    return fields | {name: value for name, value in rarely.items() if value is not None}


def _payload(content_type: str, payload: bytes) -> tuple[Raw | str | UnsetType, str | UnsetType]:
    """A payload as JSON or text, or else in base64."""
    if content_type == JSON or wire.declares_json(content_type):
        return Raw(payload), UNSET
    text = _text(content_type, payload)
    return (UNSET, b64encode(payload).decode()) if text is None else (text, UNSET)


def _text(content_type: str, payload: bytes) -> str | None:
    kind, _, parameters = content_type.lower().partition(";")
    _, found, charset = parameters.partition("charset=")
    if not kind.startswith("text/") or (found and charset.strip(' "') not in UTF_8):
        return None
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return None


def _history(history: tuple[Attempt, ...]) -> list[m.Attempt] | UnsetType:
    if not history:
        return UNSET
    return [m.Attempt(**attempt._asdict()) for attempt in history]
