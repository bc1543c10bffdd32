"""What an operator sets per queue, with its bounds: retry policy, rates, groups, limits."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from hq.errors import InvalidInput

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
MAX_LEASE_MS = DAY_MS
MAX_SPAN_MS = 10 * 366 * DAY_MS
MAX_PAYLOAD_BYTES = 64 * 1024 * 1024


class Backoff(enum.Enum):
    """How the delay between attempts grows. `none` retries at once."""

    EXPONENTIAL = "exponential"
    LINEAR = "linear"
    FIXED = "fixed"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The delay before the next attempt; jitter spreads it by so many percent either way."""

    backoff: Backoff = Backoff.EXPONENTIAL
    base_ms: int = 1_000
    factor: int = 2
    cap_ms: int = HOUR_MS
    jitter_percent: int = 10

    def __post_init__(self) -> None:
        in_range("base_ms", self.base_ms, 0, MAX_SPAN_MS)
        in_range("factor", self.factor, 1, 100)
        in_range("cap_ms", self.cap_ms, 0, MAX_SPAN_MS)
        in_range("jitter_percent", self.jitter_percent, 0, 100)

    def delay_ms(self, attempt: int) -> int:
        """The delay after the given attempt (1 is the first), before jitter."""
        match self.backoff:
            case Backoff.EXPONENTIAL:
                # Past 64 doublings every cap is reached; the bound keeps the power small.
                return min(self.base_ms * int(self.factor ** min(attempt - 1, 64)), self.cap_ms)
            case Backoff.LINEAR:
                return min(self.base_ms * attempt, self.cap_ms)
            case Backoff.FIXED:
                return min(self.base_ms, self.cap_ms)
            case Backoff.NONE:
                return 0

    def jitter_ms(self, delay_ms: int) -> int:
        """How far jitter may move this delay, either way."""
        return delay_ms * self.jitter_percent // 100


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `limit` operations per `per_ms`, up to `burst` of them at once."""

    limit: int
    per_ms: int = 1_000
    burst: int = 1

    def __post_init__(self) -> None:
        in_range("rate limit", self.limit, 1, 1_000_000)
        in_range("rate per_ms", self.per_ms, 1, DAY_MS)
        in_range("rate burst", self.burst, 1, 1_000_000)


class Groups(enum.Enum):
    """What a message's group means: an order, a mere label, or strict first in, first out."""

    ORDERED = "ordered"
    LABEL = "label"
    FIFO = "fifo"


# By these names, because finding a member in its class costs eight times as much, on every enqueue.
FIFO, ORDERED = Groups.FIFO, Groups.ORDERED


class DedupScope(enum.Enum):
    """Where a dedup key is unique."""

    QUEUE = "queue"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Settings:
    """A queue's settings. None means no limit, or none set."""

    max_attempts: int | None = 5
    lease_ms: int = 30_000
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    delay_ms: int = 0
    ttl_ms: int | None = None
    dedup_ms: int = 0
    dedup_scope: DedupScope = DedupScope.QUEUE
    groups: Groups = Groups.ORDERED
    concurrency: int | None = None
    concurrency_per_key: int | None = None
    capacity: int | None = None
    enqueue_rate: Rate | None = None
    receive_rate: Rate | None = None
    max_payload_bytes: int = 512 * 1024
    dead_letter_queue: str | None = None
    failed_ms: int = 14 * DAY_MS

    def __post_init__(self) -> None:
        optional_in_range("max_attempts", self.max_attempts, 1, 1_000_000)
        in_range("lease_ms", self.lease_ms, 0, MAX_LEASE_MS)
        in_range("delay_ms", self.delay_ms, 0, MAX_SPAN_MS)
        optional_in_range("ttl_ms", self.ttl_ms, 1, MAX_SPAN_MS)
        in_range("dedup_ms", self.dedup_ms, 0, MAX_SPAN_MS)
        optional_in_range("concurrency", self.concurrency, 1, 1_000_000)
        optional_in_range("concurrency_per_key", self.concurrency_per_key, 1, 1_000_000)
        optional_in_range("capacity", self.capacity, 1, 1 << 50)
        in_range("max_payload_bytes", self.max_payload_bytes, 1, MAX_PAYLOAD_BYTES)
        in_range("failed_ms", self.failed_ms, 0, MAX_SPAN_MS)


def in_range(name: str, value: int, low: int, high: int) -> None:
    """Refuse a value that is no integer or outside its bounds."""
    if type(value) is not int or not low <= value <= high:
        raise InvalidInput(f"{name} must be an integer from {low} to {high}, not {value!r}")


def optional_in_range(name: str, value: int | None, low: int, high: int) -> None:
    """The same for a value that may be absent."""
    if value is not None:
        in_range(name, value, low, high)
