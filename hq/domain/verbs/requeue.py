"""Requeue: a dead letter starts a new round."""

from __future__ import annotations

from hq.domain.chance import Chance
from hq.domain.commands import Requeue
from hq.domain.events import Requeued
from hq.domain.keys import key_is_free_for
from hq.domain.messages import FAILED, Message
from hq.domain.replies import Decision, Settled
from hq.domain.settings import FIFO
from hq.domain.state import QueueState
from hq.domain.verbs.enqueue import expiry
from hq.errors import MessageNotFailed


def requeue(state: QueueState, command: Requeue, now: int, _: Chance) -> Decision:
    """Bring one dead letter back with all its attempts; the record of the old ones stays."""
    message = state.message(command.message, now)
    if message.state is not FAILED:
        raise MessageNotFailed
    takes_key = key_is_free_for(state, message, now)
    event = requeued(state, message, state.sequence + 1, now, takes_key=takes_key)
    return [event], Settled(message.sequence, "ready", now)


def requeued(state: QueueState, message: Message, sequence: int, now: int, *, takes_key: bool) -> Requeued:
    """The event of a dead letter that waits again, in the lane it was in before."""
    place = message.place
    if place is not None and state.settings.groups is not FIFO:
        place = now
    expires_at = expiry(state.settings, message.options, now)
    return Requeued(sequence, now, message.sequence, now, expires_at, place, takes_key)
