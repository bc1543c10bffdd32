"""Payloads to bytes and back. The content type decides what `message.payload` gives.

What comes out equals what went in: a value that JSON would change is refused when it is enqueued.
"""

from __future__ import annotations

import json
from typing import Any

from hq.errors import InvalidInput, PayloadUnreadable

BYTES = "application/octet-stream"
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"

Payload = bytes | bytearray | memoryview | str | int | float | bool | list[Any] | dict[str, Any] | None


def encode(payload: Payload, content_type: str | None) -> tuple[bytes, str]:
    """The bytes of a payload and their content type; bytes and text may be declared as something else."""
    if content_type is None and type(payload) is bytes:
        return payload, BYTES
    if isinstance(payload, bytes | bytearray | memoryview):
        return _declared(bytes(payload), content_type or BYTES)
    if isinstance(payload, str):
        return _declared(_utf8(payload), content_type or TEXT)
    if content_type is not None and not _is_json(content_type):
        raise InvalidInput(f"a {type(payload).__name__} is sent as JSON, which {content_type!r} is not")
    return _to_json(payload), content_type or JSON


def decode(body: bytes, content_type: str) -> Any:
    """JSON as its value, text as str, anything else as its bytes."""
    try:
        if _is_json(content_type):
            return _from_json(body)
        return body.decode() if _is_text(content_type) else body
    except ValueError:
        raise PayloadUnreadable from None


def to_json(value: object) -> bytes:
    """A result or a progress as JSON, whatever it is."""
    return _to_json(value)


def from_json(body: bytes | None) -> Any:
    """The value again; None if there is none."""
    return None if body is None else _from_json(body)


def _declared(body: bytes, content_type: str) -> tuple[bytes, str]:
    if _is_json(content_type):
        try:
            _from_json(body)
        except ValueError:
            raise InvalidInput(f"the payload is declared as {content_type!r} and is no JSON") from None
    return body, content_type


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidInput("the text has lone surrogates, which UTF-8 cannot say") from None


def _to_json(value: object) -> bytes:
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        body = text.encode()
    except RecursionError:
        raise InvalidInput("the payload is nested too deeply") from None
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"the payload is no JSON value: {error}") from None
    if _from_json(body) != value:
        raise InvalidInput("JSON would change the payload: it has lists, no tuples, and only text as keys")
    return body


def _from_json(body: bytes) -> Any:
    try:
        return json.loads(body.decode(), parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == JSON or kind.endswith("+json")


def _is_text(content_type: str) -> bool:
    """Whether it is text that we can read: UTF-8, or nothing said."""
    kind, _, parameters = content_type.lower().partition(";")
    _, found, charset = parameters.partition("charset=")
    return kind.startswith("text/") and (not found or charset.strip(' "') in {"utf-8", "utf8", "us-ascii"})
