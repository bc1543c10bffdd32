"""Receive: who comes next, within pause, concurrency and rate, and the lease each delivery gets."""

from __future__ import annotations

from hq.domain.chance import Chance
from hq.domain.commands import MAX_RECEIVE, Receive
from hq.domain.events import Event, Received, ReceiveRateSpent
from hq.domain.lookups import PayloadOf
from hq.domain.messages import MAX_NAME_CHARS, Message, short_text
from hq.domain.rates import allowance, spent
from hq.domain.replies import Decision, Delivery
from hq.domain.selection import plain, select
from hq.domain.settings import MAX_LEASE_MS, in_range, optional_in_range
from hq.domain.signals import Lacking, Overdue
from hq.domain.state import QueueState
from hq.domain.tokens import FEWEST_TOKEN_BYTES, TOKEN_BYTES, token_hash


def receive(state: QueueState, command: Receive, now: int, chance: Chance) -> Decision:
    """Lease the next messages to the caller, each with a new token."""
    limit, lease_ms, holder = command.limit, command.lease_ms, command.holder
    token_bytes = command.token_bytes
    if (
        type(limit) is not int
        or limit != 1
        or lease_ms is not None
        or holder is not None
        or token_bytes != TOKEN_BYTES
    ):
        _check(command)
    settings = state.settings
    if settings.concurrency is not None or settings.receive_rate is not None:
        limit = _free_slots(state, limit, now)
    if state.paused is not None or limit <= 0:
        return [], []
    taken = plain(state, limit, now)
    if taken is None:
        taken, over = select(state, limit, now)
        if over:
            raise Overdue(*over)
    events: list[Event] = []
    deliveries: list[Delivery] = []
    sequence = state.sequence
    default_lease_ms = settings.lease_ms if lease_ms is None else lease_ms
    if settings.receive_rate is not None and taken:
        sequence += 1
        events.append(
            ReceiveRateSpent(sequence, now, spent(settings.receive_rate, state.receive_mark, now, len(taken)))
        )
    for message in taken:
        payload = message.payload
        if payload is None:
            raise Lacking(*(PayloadOf(one.sequence) for one in taken if one.payload is None))
        sequence += 1
        token = chance.token()[:token_bytes]
        options = message.options
        until = (
            now + default_lease_ms if options.lease_ms is None else lease_end(state, message, lease_ms, now)
        )
        receives, attempts = message.receives + 1, message.attempts + 1
        event = Received(
            sequence, now, message.sequence, receives, attempts, token_hash(token), holder, until
        )  # fmt: skip
        events.append(event)
        delivery = Delivery(
            message.sequence, token, payload, options, message.enqueued_at, receives, attempts, until,
            message.origin_id, message.history, message.progress,
        )  # fmt: skip
        deliveries.append(delivery)
    return events, deliveries


def _check(command: Receive) -> None:
    in_range("limit", command.limit, 1, MAX_RECEIVE)
    optional_in_range("lease_ms", command.lease_ms, 0, MAX_LEASE_MS)
    short_text("holder", command.holder, MAX_NAME_CHARS)
    in_range("token_bytes", command.token_bytes, FEWEST_TOKEN_BYTES, TOKEN_BYTES)


def lease_end(state: QueueState, message: Message, lease_ms: int | None, now: int) -> int:
    """When a lease set now ends: as the caller says, else the message, else the queue."""
    if lease_ms is None:
        lease_ms = message.options.lease_ms
    return now + (state.settings.lease_ms if lease_ms is None else lease_ms)


def _free_slots(state: QueueState, limit: int, now: int) -> int:
    """How many of `limit` the queue's concurrency and rate allow."""
    settings = state.settings
    if settings.concurrency is not None:
        limit = min(limit, settings.concurrency - len(state.leases))
    if settings.receive_rate is not None:
        limit = min(limit, allowance(settings.receive_rate, state.receive_mark, now))
    return limit
