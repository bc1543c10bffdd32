"""What a handler returns."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import NamedTuple

import msgspec

JSON = "application/json"
NDJSON = "application/x-ndjson"

encode = msgspec.json.Encoder().encode


class Reply(NamedTuple):
    """A whole answer: status, body, content type and whatever other headers it has; or a stream after it.

    An empty content type is none, for there is nothing that could have one.
    """

    status: int
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()
    stream: AsyncGenerator[bytes] | None = None


def ok(value: object, status: int = 200) -> Reply:
    """A value as JSON."""
    return Reply(status, encode(value))


NULL = Reply(200, b"null")
