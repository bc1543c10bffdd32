"""Enqueue: size, deduplication, capacity, rate, and what a message starts with."""

from __future__ import annotations

from hq.domain.chance import Chance
from hq.domain.commands import Enqueue
from hq.domain.events import Enqueued, EnqueueRateSpent
from hq.domain.keys import key_holder
from hq.domain.messages import NO_PRIORITY, Options
from hq.domain.rates import allowance, allowed_at, spent
from hq.domain.replies import Accepted, Decision
from hq.domain.settings import FIFO, ORDERED, Settings
from hq.domain.signals import Overdue
from hq.domain.state import QueueState
from hq.domain.timing import overdue
from hq.errors import PayloadTooLarge, QueueFull, RateLimited


def enqueue(state: QueueState, command: Enqueue, now: int, _: Chance) -> Decision:
    """Store a message, or name the one that already holds its dedup key."""
    settings, options = state.settings, command.options
    if len(command.payload) > settings.max_payload_bytes:
        check_size(settings, command.payload)
    if options.dedup_key is not None:
        entry = key_holder(state, options.dedup_key, options.group, now)
        if entry is not None:
            return [], Accepted(entry.message, duplicate=True)
    if settings.capacity is not None and state.counters.live() >= settings.capacity:
        over = overdue(state, now)
        if over:
            raise Overdue(*over)
        raise QueueFull
    sequence = state.sequence + 1
    if settings.enqueue_rate is None:
        return [enqueued(settings, sequence, now, command.payload, options)], Accepted(
            sequence, enqueued_at=now
        )
    rate, mark = settings.enqueue_rate, state.enqueue_mark
    if allowance(rate, mark, now) < 1:
        raise RateLimited(allowed_at(rate, mark))
    cost = EnqueueRateSpent(sequence, now, spent(rate, mark, now, 1))
    event = enqueued(settings, sequence + 1, now, command.payload, options)
    return [cost, event], Accepted(sequence + 1, enqueued_at=now)


def enqueued(settings: Settings, sequence: int, now: int, payload: bytes, options: Options) -> Enqueued:
    """The event of a new message under these settings."""
    delay_ms, dedup_ms, priority = options.delay_ms, options.dedup_ms, options.priority
    available_at = now + (settings.delay_ms if delay_ms is None else delay_ms)
    expires_at = place = None
    if settings.ttl_ms is not None or options.ttl_ms is not None:
        expires_at = expiry(settings, options, now)
        available_at = in_time(available_at, expires_at)
    if options.group is not None or options.concurrency_key is not None or settings.groups is FIFO:
        place = place_of(settings, options, available_at)
    return Enqueued(
        sequence, now, payload, options, NO_PRIORITY if priority is None else priority, available_at,
        expires_at, place, now + (settings.dedup_ms if dedup_ms is None else dedup_ms),
    )  # fmt: skip


def in_time(available_at: int, expires_at: int | None) -> int:
    """A message that expires before it is available comes up when it expires, and is ended by who meets it.

    So a group never waits for one that will not come.
    """
    return available_at if expires_at is None else min(available_at, expires_at)


def expiry(settings: Settings, options: Options, now: int) -> int | None:
    """When a message that starts to live now expires."""
    ttl_ms = settings.ttl_ms if options.ttl_ms is None else options.ttl_ms
    return None if ttl_ms is None else now + ttl_ms


def place_of(settings: Settings, options: Options, available_at: int) -> int | None:
    """Its place in its lane, before its sequence; None if it is in no lane."""
    if options.concurrency_key is not None:
        return available_at
    if settings.groups is FIFO:
        return 0
    return available_at if options.group is not None and settings.groups is ORDERED else None


def check_size(settings: Settings, payload: bytes) -> None:
    """Refuse a payload that is too large for the queue."""
    if len(payload) > settings.max_payload_bytes:
        raise PayloadTooLarge(
            f"the payload has {len(payload)} bytes; this queue takes {settings.max_payload_bytes}"
        )
