"""Delete, replace and purge: taking messages out, or their payload, without working on them."""

from __future__ import annotations

from hq.domain.chance import Chance
from hq.domain.commands import Delete, DeleteByKey, Purge, Replace
from hq.domain.events import Deleted, Purged, Replaced
from hq.domain.keys import message_by_key
from hq.domain.messages import LEASED, WAITING, Message
from hq.domain.replies import Decision, Done, Settled
from hq.domain.state import QueueState
from hq.domain.tasks import Scope
from hq.domain.verbs.enqueue import check_size
from hq.errors import MessageNotFound, MessageNotWaiting


def delete(state: QueueState, command: Delete, now: int, _: Chance) -> Decision:
    """Take one message out for good, in whatever state it is."""
    return _deleted(state, state.message(command.message, now), now)


def delete_by_key(state: QueueState, command: DeleteByKey, now: int, _: Chance) -> Decision:
    """The same for the message that holds a dedup key."""
    return _deleted(state, message_by_key(state, command.dedup_key, command.group, now), now)


def replace(state: QueueState, command: Replace, now: int, _: Chance) -> Decision:
    """Give the waiting message that holds a dedup key a new payload."""
    check_size(state.settings, command.payload)
    message = message_by_key(state, command.dedup_key, command.group, now)
    if message.state is LEASED:
        raise MessageNotWaiting
    if message.state is not WAITING:
        raise MessageNotFound
    event = Replaced(state.sequence + 1, now, message.sequence, command.payload)
    return [event], Settled(message.sequence, message.seen_at(now), message.available_at)


def purge(state: QueueState, command: Purge, now: int, _: Chance) -> Decision:
    """Take out everything of a scope with one event."""
    counters = state.counters
    count = counters.live() if command.scope is Scope.LIVE else counters.failed
    return [Purged(state.sequence + 1, now, command.scope, count)], Done(count)


def _deleted(state: QueueState, message: Message, now: int) -> Decision:
    event = Deleted(state.sequence + 1, now, message.sequence, message.state, "deleted")
    return [event], Settled(message.sequence, "deleted")
