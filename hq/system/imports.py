"""Lines of NDJSON to messages, each with a key of its own, so that a line that comes twice is one message.

A line is a message as it is enqueued, or as an export tells it. Its key is its dedup key, or else made of
what the import is called, of the number of the line and of the line itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from hq.domain.settings import DAY_MS, RetryPolicy
from hq.errors import InvalidInput
from hq.system.keywords import Outgoing
from hq.system.payloads import JSON

KEPT_MS = 7 * DAY_MS
"""How long a line is known again."""
MAX_SOURCE_CHARS = 128


class Line(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A message. What an export tells of its past is read and left behind: here it is new."""

    payload: Raw | UnsetType = UNSET
    payload_base64: bytes | UnsetType = UNSET
    content_type: str | None = None
    headers: dict[str, str] = {}
    priority: int | None = None
    group: str | None = None
    concurrency_key: str | None = None
    dedup_key: str | None = None
    idempotency_key: str | None = None
    dedup_ms: int | None = None
    delay_ms: int | None = None
    ttl_ms: int | None = None
    max_attempts: int | None = None
    lease_ms: int | None = None
    retry: RetryPolicy | None = None
    result_ms: int | None = None
    available_at: int | None = None
    expires_at: int | None = None
    id: str | None = None
    queue: str | None = None
    state: str | None = None
    token: str | None = None
    attempts: int | None = None
    receives: int | None = None
    enqueued_at: int | None = None
    lease_expires_at: int | None = None
    failed_at: int | None = None
    holder: str | None = None
    reason: str | None = None
    error: str | None = None
    origin_id: str | None = None
    history: Any = None
    progress: Any = None


_decode = msgspec.json.Decoder(Line).decode


def message_of(text: bytes, number: int, source: str, now: int) -> Outgoing:
    """The message a line has."""
    try:
        text.decode()
        line = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"the line is no message: {error}") from None
    payload, content_type = _payload(line)
    return Outgoing(payload, content_type=content_type, **_options(line, text, number, source, now))


def _payload(line: Line) -> tuple[bytes | str, str | None]:
    """A payload and its content type: JSON by default, and bytes are bytes."""
    if isinstance(line.payload_base64, bytes) and line.payload is UNSET:
        return line.payload_base64, line.content_type
    if not isinstance(line.payload, Raw) or line.payload_base64 is not UNSET:
        raise InvalidInput("a line has either payload or payload_base64")
    if line.content_type is not None and line.content_type.startswith("text/"):
        text = msgspec.json.decode(line.payload)
        if not isinstance(text, str):
            raise InvalidInput("the payload is declared as text and is none")
        return text, line.content_type
    return bytes(line.payload), line.content_type or JSON


def _options(line: Line, text: bytes, number: int, source: str, now: int) -> Mapping[str, Any]:
    options = {
        name: getattr(line, name)
        for name in ("priority", "group", "concurrency_key", "max_attempts", "lease_ms", "retry", "result_ms")
    }
    if line.available_at is not None and line.delay_ms is None:
        line.delay_ms = max(0, line.available_at - now)
    if line.expires_at is not None and line.ttl_ms is None:
        line.ttl_ms = max(1, line.expires_at - now)
    key = line.dedup_key or line.idempotency_key
    return options | {
        "headers": line.headers,
        "delay_ms": line.delay_ms,
        "ttl_ms": line.ttl_ms,
        "dedup_key": key if key is not None else _key(text, number, source),
        "dedup_ms": max(line.dedup_ms or 0, KEPT_MS),
    }


def _key(text: bytes, number: int, source: str) -> str:
    """The same for the same line of the same import, and for no other."""
    seed = f"{len(source)}:{source}:{number}:".encode()
    return f"import-{blake2b(seed + text, digest_size=16).hexdigest()}"
