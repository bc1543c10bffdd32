"""Moves: numbered per source and taken in order, so that each happens exactly once.

The source's courier asks for the next move, gives it to the target, and tells the source how that went. The
target keeps the highest number it has taken from each source, so a number that comes twice is taken once.
"""

from __future__ import annotations

from hq.domain.chance import Chance
from hq.domain.commands import NextMove, ReturnMove, SettleMove, TakeMove
from hq.domain.events import Event, Moved, MoveReturned, MoveTaken
from hq.domain.keys import key_holder
from hq.domain.replies import Accepted, Carried, Decision, Done
from hq.domain.state import QueueState
from hq.domain.verbs.enqueue import enqueued


def next_move(state: QueueState, _command: NextMove, now: int, _: Chance) -> Decision:
    """The first message on its way elsewhere."""
    for number, sequence in state.moves.items():
        message = state.message(sequence, now)
        state.with_payload(message)
        assert message.target is not None
        return [], Carried(number, message.target, message.row())
    return [], None


def take_move(state: QueueState, command: TakeMove, now: int, _: Chance) -> Decision:
    """Take a message from another queue, whatever this one's capacity, pause and rate."""
    if command.number <= state.taken.get(command.source, 0):
        return [], Done()
    options = command.options
    sequence = state.sequence + 1
    event = enqueued(state.settings, sequence + 1, now, command.payload, options)
    event.origin_id = command.origin_id
    event.history = command.history
    key = options.dedup_key
    event.takes_key = key is not None and key_holder(state, key, options.group, now) is None
    return [MoveTaken(sequence, now, command.source, command.number), event], Accepted(sequence + 1)


def settle_move(state: QueueState, command: SettleMove, now: int, _: Chance) -> Decision:
    """The target has it."""
    sequence = state.moves.get(command.number)
    if sequence is None:
        return [], Done()
    message = state.message(sequence, now)
    events: list[Event] = [Moved(state.sequence + 1, now, message.sequence, command.number)]
    return events, Done(1)


def return_move(state: QueueState, command: ReturnMove, now: int, _: Chance) -> Decision:
    """There is no such target: the message stays here as a dead letter."""
    sequence = state.moves.get(command.number)
    if sequence is None:
        return [], Done()
    message = state.message(sequence, now)
    kept_until = now + state.settings.failed_ms
    event = MoveReturned(state.sequence + 1, now, message.sequence, command.number, kept_until)
    return [event], Done(1)
