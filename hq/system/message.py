"""A message that a program holds. Its repr shows neither token nor payload."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio

from hq.domain.messages import MAX_ERROR_CHARS, Attempt
from hq.domain.replies import Delivery
from hq.domain.request_keys import producers_key
from hq.errors import HQError
from hq.system.lease import LOST, UNHEARD, Lease
from hq.system.payloads import JSON, decode
from hq.system.results import Settled

if TYPE_CHECKING:
    from hq.system.queue import Queue

log = logging.getLogger("hq.consume")

UNREAD = object()


class Message:
    """A received message, with its lease.

    `async with message:` completes it when the block ends. When the block raises, the message is retried with
    the text of the error, which goes on to the caller; in a loop over `consume` it is logged instead and the
    loop goes on. A block that is cancelled releases the message: it is not to blame. A block that settled the
    message itself is left at that, and its error goes on.
    """

    __slots__ = ("__weakref__", "_delivery", "_payload", "_queue", "consumed", "lease")

    def __init__(self, queue: Queue, delivery: Delivery, lease: Lease) -> None:
        self._queue = queue
        self._delivery = delivery
        self._payload: Any = UNREAD
        self.lease = lease
        self.consumed = False

    def __repr__(self) -> str:
        return f"<Message {self.id} of {self._queue.name}, attempt {self.attempts}, {self.state}>"

    @property
    def id(self) -> str:
        return str(self.lease.message)

    @property
    def queue(self) -> Queue:
        """The queue it was received from."""
        return self._queue

    @property
    def state(self) -> str:
        """`leased` until it is settled here, then what became of it."""
        return self.lease.state

    @property
    def lost(self) -> bool:
        """Whether its lease is known to have ended: another holder may have it. Stop working on it."""
        return self.lease.lost

    @property
    def lease_expires_at(self) -> int:
        """When the lease ends, in milliseconds since the epoch; it moves when the lease is extended."""
        return self.lease.expires_at

    @property
    def token(self) -> bytes:
        """The secret that proves the lease."""
        return self.lease.token

    @property
    def payload(self) -> Any:
        """What was enqueued: bytes, text or a JSON value, as the content type says."""
        if self._payload is UNREAD:
            self._payload = decode(self.body, self.content_type)
        return self._payload

    @property
    def body(self) -> bytes:
        """The bytes of the payload."""
        return self._delivery.payload

    @property
    def content_type(self) -> str:
        return self._delivery.options.content_type

    @property
    def headers(self) -> dict[str, str]:
        return dict(self._delivery.options.headers)

    @property
    def priority(self) -> int | None:
        return self._delivery.options.priority

    @property
    def group(self) -> str | None:
        return self._delivery.options.group

    @property
    def concurrency_key(self) -> str | None:
        return self._delivery.options.concurrency_key

    @property
    def dedup_key(self) -> str | None:
        return producers_key(self._delivery.options.dedup_key)

    @property
    def result_ms(self) -> int | None:
        """How long its producer wants the result kept; None if it wants none."""
        return self._delivery.options.result_ms

    @property
    def progress(self) -> Any:
        """What an earlier attempt last said of its progress; None if nothing was said."""
        told = self._delivery.progress
        return None if told is None else decode(told, JSON)

    @property
    def receives(self) -> int:
        """How often it was received, this time included; it only grows, so it can serve as fencing number."""
        return self._delivery.receives

    @property
    def attempts(self) -> int:
        """The receives that count, this one included."""
        return self._delivery.attempts

    @property
    def enqueued_at(self) -> int:
        return self._delivery.enqueued_at

    @property
    def history(self) -> tuple[Attempt, ...]:
        """Its last attempts, oldest first, with how each ended."""
        return self._delivery.history

    @property
    def origin_id(self) -> str | None:
        """The id it had in the queue it was moved from."""
        return self._delivery.origin_id

    async def complete(self, *, result: Any = None) -> Settled:
        """The work is done; a result is kept if its producer asked for one."""
        return await self._queue.complete(self, result=result)

    async def report(self, progress: Any) -> Settled:
        """Say how far the work is, in a small JSON value: its producer sees it, and a next attempt."""
        return await self._queue.report(self, progress)

    async def retry(self, *, delay_ms: int | None = None, error: str | None = None) -> Settled:
        """The attempt went wrong: try later, or never if it was the last."""
        return await self._queue.retry(self, delay_ms=delay_ms, error=error)

    async def fail(self, *, error: str | None = None) -> Settled:
        """Never again: the message becomes a dead letter."""
        return await self._queue.fail(self, error=error)

    async def release(self) -> Settled:
        """Give it back without blame: the attempt does not count."""
        return await self._queue.release(self)

    async def extend(self, lease_ms: int | None = None) -> Settled:
        """Set a new end of the lease, counted from now."""
        return await self._queue.extend(self, lease_ms)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self.state != "leased":
            return False
        # Shielded: what became of the work is told even if the caller is cancelled meanwhile. It cannot hang,
        # for a node answers everyone.
        with anyio.CancelScope(shield=True):
            if error is None:
                await self._complete_at_exit()
                return False
            if isinstance(error, Exception):
                return await self._retry_at_exit(error)
            await self._release_at_exit()
        return False

    async def _complete_at_exit(self) -> None:
        try:
            await self.complete()
        except LOST as refusal:
            if not self.consumed:
                raise
            self._warn("a completed message was no longer held", refusal)
        except UNHEARD as trouble:
            if not self.consumed:
                raise
            self._let_go("nobody answers that a message is completed; if it is not, it comes back", trouble)

    async def _retry_at_exit(self, error: Exception) -> bool:
        """Whether the error stays here."""
        try:
            await self.retry(error=f"{type(error).__name__}: {error}"[:MAX_ERROR_CHARS])
        except HQError as refusal:
            error.add_note(f"hq could not retry the message: {refusal}")
            if self.consumed and isinstance(refusal, UNHEARD):
                self._let_go("nobody answers that a message is retried; if it is not, it comes back", error)
                return True
            if not isinstance(refusal, LOST):
                return False
        if self.consumed:
            self._warn("a message is retried", error)
        return self.consumed

    async def _release_at_exit(self) -> None:
        try:
            await self.release()
        except HQError as refusal:
            self._warn("a message could not be released; its lease will end", refusal)

    def _let_go(self, event: str, error: Exception) -> None:
        """Its consumer goes on without it: the lease is renewed no more."""
        self.lease.lose()
        self._warn(event, error)

    def _warn(self, event: str, error: Exception) -> None:
        told = {"queue": self._queue.name, "message_id": self.id, "attempts": self.attempts}
        log.warning(event, extra=told, exc_info=error)
