"""A message that a program looked at and does not hold. Its repr shows no payload."""

from __future__ import annotations

from typing import Any

from hq.domain.messages import LEASED, Attempt, Message
from hq.domain.request_keys import producers_key
from hq.system.payloads import decode


class SeenMessage:
    """A message as it was at the time of a look; nothing is held."""

    __slots__ = ("_stored", "id", "state")

    def __init__(self, message_id: str, stored: Message, state: str) -> None:
        self.id = message_id
        self.state = state
        self._stored = stored

    def __repr__(self) -> str:
        return f"<SeenMessage {self.id}, {self.state}>"

    @property
    def payload(self) -> Any:
        """What was enqueued: bytes, text or a JSON value, as the content type says."""
        return decode(self.body, self.content_type)

    @property
    def body(self) -> bytes:
        """The bytes of the payload."""
        assert self._stored.payload is not None, "a look brings the payload"
        return self._stored.payload

    @property
    def content_type(self) -> str:
        return self._stored.options.content_type

    @property
    def headers(self) -> dict[str, str]:
        return dict(self._stored.options.headers)

    @property
    def priority(self) -> int | None:
        return self._stored.options.priority

    @property
    def group(self) -> str | None:
        return self._stored.options.group

    @property
    def concurrency_key(self) -> str | None:
        return self._stored.options.concurrency_key

    @property
    def dedup_key(self) -> str | None:
        return producers_key(self._stored.options.dedup_key)

    @property
    def receives(self) -> int:
        return self._stored.receives

    @property
    def attempts(self) -> int:
        return self._stored.attempts

    @property
    def enqueued_at(self) -> int:
        return self._stored.enqueued_at

    @property
    def available_at(self) -> int:
        return self._stored.available_at

    @property
    def expires_at(self) -> int | None:
        return self._stored.expires_at

    @property
    def holder(self) -> str | None:
        """Who holds it, or held it last."""
        return self._stored.holder

    @property
    def lease_expires_at(self) -> int | None:
        """When its lease ends, if it is leased."""
        return self._stored.lease_expires_at if self._stored.state is LEASED else None

    @property
    def reason(self) -> str | None:
        """Why it is failed: `failed` by its holder, out of `attempts`, ..."""
        return self._stored.reason

    @property
    def error(self) -> str | None:
        """The error text of a failed message."""
        return self._stored.error

    @property
    def history(self) -> tuple[Attempt, ...]:
        return self._stored.history

    @property
    def origin_id(self) -> str | None:
        return self._stored.origin_id
