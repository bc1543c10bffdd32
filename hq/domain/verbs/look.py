"""Peek, get, browse, count: looking without touching."""

from __future__ import annotations

from hq.domain.chance import Chance
from hq.domain.commands import MAX_BROWSE, Browse, Count, Dates, Get, Peek
from hq.domain.listing import listed
from hq.domain.lookups import DelayedAfter, InInbox, PayloadOf
from hq.domain.messages import WAITING, Message
from hq.domain.replies import Decision, Seen, Stats, Used
from hq.domain.selection import select
from hq.domain.settings import in_range
from hq.domain.signals import Lacking
from hq.domain.state import QueueState
from hq.domain.tasks import Scope


def peek(state: QueueState, command: Peek, now: int, _: Chance) -> Decision:
    """The messages that are next in order, whether or not the queue is paused or full of leases."""
    in_range("limit", command.limit, 1, MAX_BROWSE)
    return [], _seen(select(state, command.limit, now).taken, now)


def get(state: QueueState, command: Get, now: int, _: Chance) -> Decision:
    """One message, whole."""
    [seen] = _seen([state.message(command.message, now)], now)
    return [], seen


def browse(state: QueueState, command: Browse, now: int, _: Chance) -> Decision:
    """Messages of a scope by sequence."""
    in_range("limit", command.limit, 1, MAX_BROWSE)
    return [], _seen(listed(state, command.scope, command.after, command.limit, now), now)


def count(state: QueueState, _command: Count, now: int, _: Chance) -> Decision:
    """The queue in numbers."""
    counters = state.counters
    delayed = _delayed(state, now)
    stats = Stats(
        ready=counters.waiting - delayed,
        delayed=delayed,
        leased=counters.leased,
        failed=counters.failed,
        moving=counters.moving,
        enqueued=counters.enqueued,
        completed=counters.completed,
        expired=counters.expired,
        deleted=counters.deleted,
        purged=counters.purged,
        moved=counters.moved,
        receives=counters.receives,
        retries=counters.retries,
        lapses=counters.lapses,
        paused=state.paused,
        next_lease_end=state.next_lease_end(),
        sequence=state.sequence,
        inbox=_in_inbox(state),
    )
    return [], stats


def dates(state: QueueState, _command: Dates, now: int, _: Chance) -> Decision:
    """Since when it is used, and when its settings were last changed: if never, when it was first used."""
    used_at = now if state.used_at is None else state.used_at
    return [], Used(used_at, used_at if state.changed_at is None else state.changed_at)


def _seen(messages: list[Message], now: int) -> list[Seen]:
    without_payload = [PayloadOf(message.sequence) for message in messages if message.payload is None]
    if without_payload:
        raise Lacking(*without_payload)
    return [Seen(message.row(), message.seen_at(now)) for message in messages]


def _in_inbox(state: QueueState) -> int:
    if not state.has_inbox:
        return 0
    if state.in_inbox is None:
        raise Lacking(InInbox())
    return state.in_inbox


def _delayed(state: QueueState, now: int) -> int:
    """Storage counts its rows; what memory knows better is taken off and counted as it is."""
    changed = {**state.cutting, **state.delta}
    count = sum(held.state is WAITING and held.available_at > now for held in changed.values())
    if not state.has_rows:
        return count
    asked = DelayedAfter(now, state.purged[Scope.LIVE])
    if asked not in state.delayed_after:
        raise Lacking(asked)
    outdated = sum(held.stored and held.stored_at > now for held in changed.values())
    return count + state.delayed_after[asked] - outdated
