"""What time does by itself: leases end, messages expire, dead letters are no longer kept; and when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from hq.domain.events import Deleted, Event, Expired, Failed, Forgotten, Lapsed, MoveStarted
from hq.domain.lookups import END, Bounds, EndsPage, Key
from hq.domain.messages import FAILED, WAITING, Message
from hq.domain.rates import allowance, allowed_at
from hq.domain.selection import is_worn_out
from hq.domain.signals import Lacking
from hq.domain.state import QueueState

CHUNK = 1_000


def ended_leases(state: QueueState, now: int) -> list[Message]:
    """The messages whose leases are over, those that ended first coming first; a chunk at most."""
    if state.next_lease_end() is None:
        return []
    held = [state.leases.get(sequence) for _, sequence in _due(state.lease_ends, now)]
    over = dict.fromkeys(lease for lease in held if lease is not None and lease.lease_expires_at <= now)
    return list(over)


def overdue(state: QueueState, now: int) -> list[Message]:
    """Waiting messages that are expired, dead letters and results that were kept long enough; a chunk."""
    if not state.order.bounds_known:
        raise Lacking(Bounds())
    first, rest = state.next_end(), state.ends.rest
    if rest[0] <= now and (first is None or rest <= first):
        raise Lacking(EndsPage(rest, now, min(CHUNK, state.head)))
    timed = [state.messages.get(key[1]) for key in _due(state.ends.heap, now) if key < rest]
    over = dict.fromkeys(message for message in timed if message is not None and message.is_over(now))
    return list(over)


def end(state: QueueState, messages: Iterable[Message], now: int) -> list[Event]:
    """The events that end messages which are over, each in its way."""
    events: list[Event] = []
    for message in messages:
        sequence = state.sequence + len(events) + 1
        if message.state is FAILED:
            events.append(Deleted(sequence, now, message.sequence, FAILED, "retention"))
        elif message.is_result:
            events.append(Forgotten(sequence, now, message.sequence))
        elif message.state is WAITING and message.expires_at is not None and message.expires_at <= now:
            events.append(Expired(sequence, now, message.sequence))
        elif is_worn_out(state, message):
            events += failed(state, message, Ending(now, "attempts"), events)
        else:
            events.append(Lapsed(sequence, now, message.sequence))
    return events


class Ending(NamedTuple):
    """When and why a message became a dead letter."""

    at: int
    reason: str
    error: str | None = None


def failed(state: QueueState, message: Message, ending: Ending, before: Sequence[Event] = ()) -> list[Event]:
    """The events that make a message a dead letter, and send it on its way if the queue names another.

    `before` are the events of the same decision that come first.
    """
    at, reason, error = ending
    settings = state.settings
    sequence = state.sequence + len(before) + 1
    kept_until = at + settings.failed_ms
    events: list[Event] = [Failed(sequence, at, message.sequence, message.state, reason, error, kept_until)]
    if settings.dead_letter_queue is not None:
        move = state.next_move + sum(type(event) is MoveStarted for event in before)
        target = settings.dead_letter_queue
        events.append(MoveStarted(sequence + 1, at, message.sequence, FAILED, move, target))
    return events


def sweep_at(state: QueueState) -> int | None:
    """When a lease ends or time takes a message away; at once if storage was not asked yet."""
    if not state.order.bounds_known:
        return state.time
    earliest = END[0]
    next_end, lease_end, stored_end = state.next_end(), state.next_lease_end(), state.ends.rest[0]
    if next_end is not None and next_end[0] < earliest:
        earliest = next_end[0]
    if lease_end is not None and lease_end < earliest:
        earliest = lease_end
    earliest = min(earliest, stored_end)
    return None if earliest == END[0] else earliest


def due_at(state: QueueState) -> int | None:
    """When a sweep, a tick or a step of a task is next due."""
    swept = sweep_at(state)
    if not state.schedules and not state.tasks:
        return swept
    instants = [planned.next_at for planned in state.schedules.values()]
    instants += [task.next_at for task in state.tasks.values()]
    if swept is not None:
        instants.append(swept)
    return min(instants, default=None)


def wake_at(state: QueueState) -> int | None:
    """When the queue next has something to do by itself: at once if moves are to be sent."""
    return state.time if state.moves else due_at(state)


def ready_at(state: QueueState, now: int) -> int | None:
    """When time alone may give something to a receive that has just found nothing."""
    instants = []
    for shelf in state.order.shelves.values():
        instants += [key[0] for key in (*shelf.heap[:1], shelf.rest) if now < key[0] < END[0]]
    rate = state.settings.receive_rate
    if rate is not None and allowance(rate, state.receive_mark, now) < 1:
        instants.append(allowed_at(rate, state.receive_mark))
    return min(instants, default=None)


def _due(heap: list[Key], now: int) -> list[Key]:
    """What a heap of instants has up to now, a chunk at most; the heap stays as it is."""
    due: list[Key] = []
    while heap and heap[0][0] <= now and len(due) < CHUNK:
        due.append(heappop(heap))
    for key in due:
        heappush(heap, key)
    return due
