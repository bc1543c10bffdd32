"""A message: what its producer said of it, and what has happened to it since."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from hq.domain.settings import MAX_LEASE_MS, MAX_SPAN_MS, RetryPolicy, in_range, optional_in_range
from hq.errors import InvalidInput

if TYPE_CHECKING:
    from hq.domain.ordering import Lane

MAX_NAME_CHARS = 128
MAX_KEY_CHARS = 512
MAX_HEADERS = 64
MAX_HEADER_BYTES = 64 * 1024
MAX_ERROR_CHARS = 4_096
MAX_RESULT_BYTES = 64 * 1024
MAX_PROGRESS_BYTES = 4_096
KEPT_ATTEMPTS = 10
NO_PRIORITY = -(1 << 15) - 1
TICKET = "hq-ticket"
"""The header that has the ticket of a message that came by the inbox."""


class State(enum.StrEnum):  # a StrEnum hashes in C, and the transition table is on every path
    """Where a message is. `waiting` is seen as `ready` or `delayed`: the clock alone decides which."""

    WAITING = "waiting"
    LEASED = "leased"
    FAILED = "failed"
    MOVING = "moving"
    COMPLETED = "completed"
    EXPIRED = "expired"
    DELETED = "deleted"
    MOVED = "moved"


WAITING, LEASED, FAILED, MOVING = State.WAITING, State.LEASED, State.FAILED, State.MOVING
COMPLETED = State.COMPLETED


class LaneId(NamedTuple):
    """A lane is a group, or one priority of a concurrency key."""

    kind: str
    name: str
    rank: int


def short_text(name: str, value: object, most: int) -> None:
    """Refuse a text that is too long or no text."""
    if value is not None and (not isinstance(value, str) or len(value) > most):
        raise InvalidInput(f"{name} must be a text of at most {most} characters")


@dataclass(frozen=True, slots=True)
class Options:
    """What a producer may say of a message; None leaves it to the queue."""

    content_type: str = "application/octet-stream"
    headers: tuple[tuple[str, str], ...] = ()
    priority: int | None = None
    group: str | None = None
    concurrency_key: str | None = None
    dedup_key: str | None = None
    dedup_ms: int | None = None
    delay_ms: int | None = None
    ttl_ms: int | None = None
    max_attempts: int | None = None
    lease_ms: int | None = None
    retry: RetryPolicy | None = None
    result_ms: int | None = None

    def __post_init__(self) -> None:
        optional_in_range("priority", self.priority, -(1 << 15), (1 << 15) - 1)
        optional_in_range("dedup_ms", self.dedup_ms, 0, MAX_SPAN_MS)
        optional_in_range("delay_ms", self.delay_ms, 0, MAX_SPAN_MS)
        optional_in_range("ttl_ms", self.ttl_ms, 1, MAX_SPAN_MS)
        optional_in_range("max_attempts", self.max_attempts, 1, 1_000_000)
        optional_in_range("lease_ms", self.lease_ms, 0, MAX_LEASE_MS)
        optional_in_range("result_ms", self.result_ms, 1, MAX_SPAN_MS)
        short_text("group", self.group, MAX_NAME_CHARS)
        short_text("concurrency_key", self.concurrency_key, MAX_NAME_CHARS)
        short_text("dedup_key", self.dedup_key, MAX_KEY_CHARS)
        short_text("content_type", self.content_type, MAX_NAME_CHARS)
        if self.group is not None and self.concurrency_key is not None:
            raise InvalidInput("a message has a group or a concurrency key, not both")
        in_range("number of headers", len(self.headers), 0, MAX_HEADERS)
        size = sum(len(name.encode()) + len(value.encode()) for name, value in self.headers)
        in_range("bytes of headers", size, 0, MAX_HEADER_BYTES)


PLAIN = Options()
PLAIN_JSON = Options(content_type="application/json")
"""What most messages are; whoever meets one of the two by identity need not look at each option."""


class Attempt(NamedTuple):
    """One lease that ended without completing its message."""

    receives: int
    holder: str | None
    received_at: int
    ended_at: int
    outcome: str
    error: str | None


# Plain slotted, not frozen: an actor holds many and changes them in place, and building one is on the
# path of every enqueue.
@dataclass(slots=True, eq=False)
class Message:
    """A message as its queue knows it. `payload` is None in memory while only its row holds it.

    A completed one is kept until `kept_until` if its producer asked for a result: that is its payload then.
    """

    sequence: int
    options: Options
    payload: bytes | None
    rank: int
    enqueued_at: int
    available_at: int
    expires_at: int | None
    place: int | None
    dedup_until: int
    origin_id: str | None
    as_of: int
    state: State = WAITING
    holds_key: bool = False
    receives: int = 0
    attempts: int = 0
    token_hash: bytes | None = None
    holder: str | None = None
    received_at: int = 0
    lease_expires_at: int = 0
    history: tuple[Attempt, ...] = ()
    failed_at: int = 0
    kept_until: int = 0
    reason: str | None = None
    error: str | None = None
    move: int | None = None
    target: str | None = None
    progress: bytes | None = None
    # Bookkeeping of the queue's memory, in no row: whether a row exists or is cut, whether only memory has
    # its payload, the available_at that row waits with; under which instant its shelf holds it, at which
    # place its lane does, and that lane.
    stored: bool = False
    fresh: bool = False
    stored_at: int = -1
    offered: int = -1
    placed: int = -1
    lane: Lane | None = None

    @property
    def lane_id(self) -> LaneId | None:
        """The lane this message is in, if it is in one."""
        if self.place is None:
            return None
        key = self.options.concurrency_key
        if key is not None:
            return LaneId("key", key, self.rank)
        return LaneId("group", self.options.group or "", 0)

    @property
    def ends_at(self) -> int | None:
        """When time alone takes it away: waiting, it expires; failed or a result, it is kept no longer."""
        if self.state is WAITING:
            return self.expires_at
        if self.state is FAILED:
            return self.kept_until
        return self.kept_until if self.is_result else None

    @property
    def is_result(self) -> bool:
        """Whether the work is done and what came of it is kept."""
        return self.state is COMPLETED and self.kept_until > 0

    def is_over(self, now: int) -> bool:
        """Whether time has taken it away, though nobody may have said so yet."""
        ends_at = self.ends_at
        return ends_at is not None and ends_at <= now

    def row(self) -> Message:
        """A copy without bookkeeping, as it is stored."""
        return Message(
            self.sequence, self.options, self.payload, self.rank, self.enqueued_at, self.available_at,
            self.expires_at, self.place, self.dedup_until, self.origin_id, self.as_of, self.state,
            self.holds_key, self.receives, self.attempts, self.token_hash, self.holder, self.received_at,
            self.lease_expires_at, self.history, self.failed_at, self.kept_until, self.reason, self.error,
            self.move, self.target, self.progress,
        )  # fmt: skip

    def seen_at(self, now: int) -> str:
        """Its state in the words of the glossary."""
        if self.state is WAITING:
            return "ready" if self.available_at <= now else "delayed"
        return self.state.value
