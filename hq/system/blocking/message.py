"""A message that a thread holds."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from hq.domain.messages import Attempt
from hq.system.blocking.calls import Calls
from hq.system.message import Message as Held
from hq.system.results import Settled

if TYPE_CHECKING:
    from hq.system.blocking.queue import Queue


class Message:
    """A received message, with its lease. `with message:` does what `async with` does for hq.Message."""

    __slots__ = ("_call", "_queue", "held")

    def __init__(self, held: Held, queue: Queue, call: Calls) -> None:
        self.held = held
        self._queue = queue
        self._call = call

    def __repr__(self) -> str:
        return repr(self.held)

    @property
    def id(self) -> str:
        return self.held.id

    @property
    def queue(self) -> Queue:
        """The queue it was received from."""
        return self._queue

    @property
    def state(self) -> str:
        """`leased` until it is settled here, then what became of it."""
        return self.held.state

    @property
    def lost(self) -> bool:
        """Whether its lease is known to have ended: another holder may have it. Stop working on it."""
        return self.held.lost

    @property
    def lease_expires_at(self) -> int:
        return self.held.lease_expires_at

    @property
    def token(self) -> bytes:
        return self.held.token

    @property
    def payload(self) -> Any:
        """What was enqueued: bytes, text or a JSON value, as the content type says."""
        return self.held.payload

    @property
    def body(self) -> bytes:
        return self.held.body

    @property
    def content_type(self) -> str:
        return self.held.content_type

    @property
    def headers(self) -> dict[str, str]:
        return self.held.headers

    @property
    def priority(self) -> int | None:
        return self.held.priority

    @property
    def group(self) -> str | None:
        return self.held.group

    @property
    def concurrency_key(self) -> str | None:
        return self.held.concurrency_key

    @property
    def dedup_key(self) -> str | None:
        return self.held.dedup_key

    @property
    def receives(self) -> int:
        return self.held.receives

    @property
    def attempts(self) -> int:
        return self.held.attempts

    @property
    def enqueued_at(self) -> int:
        return self.held.enqueued_at

    @property
    def history(self) -> tuple[Attempt, ...]:
        return self.held.history

    @property
    def origin_id(self) -> str | None:
        return self.held.origin_id

    @property
    def result_ms(self) -> int | None:
        return self.held.result_ms

    @property
    def progress(self) -> Any:
        return self.held.progress

    def complete(self, *, result: Any = None) -> Settled:
        """The work is done; a result is kept if its producer asked for one."""
        return self._call(self.held.complete, result=result)

    def report(self, progress: Any) -> Settled:
        """Say how far the work is, in a small JSON value."""
        return self._call(self.held.report, progress)

    def retry(self, *, delay_ms: int | None = None, error: str | None = None) -> Settled:
        """The attempt went wrong: try later, or never if it was the last."""
        return self._call(self.held.retry, delay_ms=delay_ms, error=error)

    def fail(self, *, error: str | None = None) -> Settled:
        """Never again: the message becomes a dead letter."""
        return self._call(self.held.fail, error=error)

    def release(self) -> Settled:
        """Give it back without blame: the attempt does not count."""
        return self._call(self.held.release)

    def extend(self, lease_ms: int | None = None) -> Settled:
        """Set a new end of the lease, counted from now."""
        return self._call(self.held.extend, lease_ms)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return self._call(self.held.__aexit__, kind, error, trace)
