"""Loading: a queue from its last snapshot, its leases and the events after the mark.

Rows may be newer than the mark, so an event up to a row's `as_of` has already done its work on that message,
and an event of a message without a row is about one that is settled since. Both still count, and both still
speak of dedup keys and moves, which memory has as they were at the mark.
"""

from __future__ import annotations

from collections.abc import Iterable

from hq.domain import events as e
from hq.domain.apply import apply, free_key, hold_key
from hq.domain.checkpoint import Snapshot, shed
from hq.domain.lookups import Lookup, RowOf
from hq.domain.messages import Message
from hq.domain.state import DEFAULT_HEAD, QueueState


def load(snapshot: Snapshot, leases: Iterable[Message], head: int = DEFAULT_HEAD) -> QueueState:
    """The queue as its snapshot and the rows of its leases say; what came after the mark is replayed next."""
    state = QueueState(snapshot.settings, head)
    state.sequence, state.time, state.epoch = snapshot.sequence, snapshot.time, snapshot.epoch
    state.counters = snapshot.counters
    state.purged, state.paused, state.paused_groups = snapshot.purged, snapshot.paused, snapshot.paused_groups
    state.enqueue_mark, state.receive_mark = snapshot.enqueue_mark, snapshot.receive_mark
    state.schedules, state.tasks, state.next_task = snapshot.schedules, snapshot.tasks, snapshot.next_task
    state.moves, state.next_move, state.taken = snapshot.moves, snapshot.next_move, snapshot.taken
    state.used_at, state.changed_at = snapshot.used_at, snapshot.changed_at
    state.has_rows = state.has_keys = True
    for row in leases:
        if not state.is_purged(row):
            row.stored = True
            row.payload = None
            state.messages[row.sequence] = state.leases[row.sequence] = row
            state.push_lease_end(row)
    shed(state)
    return state


def mentioned(events: Iterable[e.Event]) -> list[Lookup]:
    """The rows that replaying these events wants at hand."""
    sequences = {
        event.sequence if isinstance(event, e.Enqueued) else event.message
        for event in events
        if isinstance(event, e.Enqueued | e.MessageEvent)
    }
    return [RowOf(sequence) for sequence in sorted(sequences)]


def replay(state: QueueState, events: Iterable[e.Event]) -> None:
    """Apply what the rows do not know yet; the rows mentioned must have been absorbed."""
    for event in events:
        if isinstance(event, e.Enqueued):
            message = state.find(event.sequence)
            if message is None:
                apply(state, event)
                continue
        elif isinstance(event, e.MessageEvent):
            message = state.find(event.message)
            if message is not None and message.as_of < event.sequence:
                apply(state, event)
                continue
        else:
            apply(state, event)
            if isinstance(event, e.Purged):
                _forget_purged(state)
            continue
        if message is not None:
            _hold_or_free_key(state, event, message)
        _count(state, event)
    shed(state)


def _forget_purged(state: QueueState) -> None:
    for sequence, row in state.aside.items():
        if row is not None and state.is_purged(row):
            state.aside[sequence] = None
    # Rows and keys newer than the purge may be stored already.
    state.has_keys = True


def _hold_or_free_key(state: QueueState, event: e.Event, message: Message) -> None:
    """What a message event did to the message's dedup key."""
    if message.options.dedup_key is None:
        return
    if isinstance(event, e.Enqueued | e.Requeued):
        if event.takes_key:
            hold_key(state, message)
    elif isinstance(event, e.Completed | e.Failed | e.MoveStarted):
        entry = state.delta_keys.get(state.key_of(message))
        if entry is not None and entry.live and entry.message == message.sequence:
            free_key(state, message, event.at)


def _count(state: QueueState, event: e.Event) -> None:
    """What an event did beside changing its message."""
    if isinstance(event, e.MoveStarted):
        state.moves[event.move] = event.message
        state.next_move = event.move + 1
    elif isinstance(event, e.Moved | e.MoveReturned):
        state.moves.pop(event.move, None)
    elif isinstance(event, e.Deleted):
        state.moves = {move: moving for move, moving in state.moves.items() if moving != event.message}
    state.counters.fold(event)
    state.sequence = event.sequence
    state.time = event.at
