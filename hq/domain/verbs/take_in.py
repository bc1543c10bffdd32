"""Take in: what an application enqueued in a transaction of its own, which has committed.

It cannot be refused any more. It waits where it is while the queue has no room for it; what no queue could
take becomes a dead letter that says why; a duplicate leaves an event, so that it is known to be dealt with.
"""

from __future__ import annotations

from hq.domain.chance import Chance
from hq.domain.commands import Enqueue, TakeIn
from hq.domain.events import Duplicated, Event
from hq.domain.messages import Message
from hq.domain.replies import Accepted, Decision
from hq.domain.state import QueueState
from hq.domain.timing import Ending, failed
from hq.domain.verbs.enqueue import enqueue, enqueued
from hq.errors import InvalidInput, PayloadTooLarge


def take_in(state: QueueState, command: TakeIn, now: int, chance: Chance) -> Decision:
    """Store a message, as enqueue does; only for want of room is it refused."""
    if command.unfit is not None:
        return _dead_letter(state, command, now, InvalidInput(command.unfit))
    try:
        events, reply = enqueue(state, Enqueue(command.payload, command.options), now, chance)
    except PayloadTooLarge as refusal:
        return _dead_letter(state, command, now, refusal)
    if isinstance(reply, Accepted) and reply.duplicate:
        return [Duplicated(state.sequence + 1, now, reply.message, command.ticket)], reply
    return events, reply


def _dead_letter(
    state: QueueState, command: TakeIn, now: int, refusal: InvalidInput | PayloadTooLarge
) -> Decision:
    """Stored and failed at once: neither capacity nor rate have to do with it."""
    sequence = state.sequence + 1
    event = enqueued(state.settings, sequence, now, command.payload, command.options)
    event.takes_key = False
    message = Message(
        sequence, event.options, event.payload, event.rank, now, event.available_at, event.expires_at,
        event.place, event.dedup_until, None, sequence,
    )  # fmt: skip
    events: list[Event] = [event]
    events += failed(state, message, Ending(now, refusal.code, str(refusal)), events)
    return events, Accepted(sequence)
