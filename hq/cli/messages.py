"""Messages as rows: the keys that the HTTP API has, every one of them always there."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from hq.cli.show import Show

if TYPE_CHECKING:
    from hq.system.message import Message
    from hq.system.seen import SeenMessage

COLUMNS = ("id", "state", "attempts", "available", "payload")
HELD_COLUMNS = ("id", "token", "attempts", "payload")
DEAD_COLUMNS = ("id", "reason", "attempts", "error", "payload")
SHOWN_CHARS = 100


def seen(queue: str, message: SeenMessage) -> dict[str, Any]:
    """A message that was looked at."""
    return {
        "id": message.id,
        "queue": queue,
        "state": message.state,
        **_said(message),
        "available_at": message.available_at,
        "expires_at": message.expires_at,
        "lease_expires_at": message.lease_expires_at,
        "holder": message.holder,
        "reason": message.reason,
        "error": message.error,
    }


def held(message: Message) -> dict[str, Any]:
    """A message that was received: with the token of its lease."""
    return {
        "id": message.id,
        "queue": message.queue.name,
        "token": message.token.hex(),
        **_said(message),
        "lease_expires_at": message.lease_expires_at,
    }


def tell(show: Show, queue: str, found: Iterable[SeenMessage], columns: Sequence[str]) -> None:
    """Messages that were looked at: a table, or a line of NDJSON for each."""
    tell_rows(show, [seen(queue, one) for one in found], columns)


def tell_rows(show: Show, rows: list[dict[str, Any]], columns: Sequence[str]) -> None:
    """Messages as rows."""
    if show.as_json:
        for row in rows:
            show.line(row)
    else:
        show.rows(map(brief, rows), columns, nothing="no message")


def brief(row: dict[str, Any]) -> dict[str, Any]:
    """The same for people: the payload in short, and when it may be received."""
    payload = row["payload"] if "payload" in row else f"base64 {row['payload_base64']}"
    text = bytes(payload).decode() if isinstance(payload, Raw) else payload
    cut = text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
    return row | {"payload": " ".join(cut.split()), "available": instant(row.get("available_at"))}


def _said(message: Message | SeenMessage) -> dict[str, Any]:
    return {
        **_payload(message.body, message.content_type),
        "content_type": message.content_type,
        "headers": message.headers,
        "priority": message.priority,
        "group": message.group,
        "concurrency_key": message.concurrency_key,
        "dedup_key": message.dedup_key,
        "attempts": message.attempts,
        "receives": message.receives,
        "enqueued_at": message.enqueued_at,
        "origin_id": message.origin_id,
        "history": [attempt._asdict() for attempt in message.history],
    }


def _payload(body: bytes, content_type: str) -> dict[str, Any]:
    """JSON as it came and text as a text, as long as a line can hold it; else in base64."""
    from hq.http.wire import declares_json

    if declares_json(content_type) and b"\n" not in body and b"\r" not in body:
        return {"payload": Raw(body)}
    if content_type.startswith("text/plain"):
        try:
            return {"payload": body.decode()}
        except UnicodeDecodeError:
            pass
    return {"payload_base64": b64encode(body).decode()}


def instant(at: int | None) -> str | None:
    """An instant as people write it, in UTC."""
    from datetime import UTC, datetime

    return None if at is None else datetime.fromtimestamp(at / 1_000, UTC).isoformat(timespec="seconds")
