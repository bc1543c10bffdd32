"""apply(state, event): what an event does to memory. It reads no settings, no clock and no chance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hq.domain import events as e
from hq.domain.lookups import Entry
from hq.domain.messages import KEPT_ATTEMPTS, LEASED, WAITING, Attempt, Message, State
from hq.domain.ordering import Order
from hq.domain.schedules import Planned
from hq.domain.state import QueueState
from hq.domain.tasks import Scope
from hq.domain.transitions import TRANSITIONS
from hq.errors import BrokenInvariant


def apply(state: QueueState, event: e.Event) -> None:
    """Change the state as the event says; a step the transition table does not know stops here."""
    _APPLY[type(event)](state, event)
    state.sequence = event.sequence
    state.time = event.at


def _enqueued(state: QueueState, event: e.Enqueued) -> None:
    counters = state.counters
    counters.enqueued += 1
    counters.waiting += 1
    sequence = event.sequence
    message = Message(
        sequence, event.options, event.payload, event.rank, event.at, event.available_at, event.expires_at,
        event.place, event.dedup_until, event.origin_id, sequence,
    )  # fmt: skip
    if event.history:
        message.history = event.history
    state.messages[sequence] = state.delta[sequence] = message
    state.order.add(message)
    if event.expires_at is not None:
        state.push_end(message)
    if event.options.dedup_key is not None and event.takes_key:
        message.holds_key = True
        hold_key(state, message)


def _received(state: QueueState, event: e.Received) -> None:
    counters = state.counters
    counters.waiting -= 1
    counters.leased += 1
    counters.receives += 1
    message = _step(state, event)
    message.receives = event.receives
    message.attempts = event.attempts
    message.token_hash = event.token_hash
    message.holder = event.holder
    message.received_at = event.at
    message.lease_expires_at = event.lease_expires_at
    state.leases[message.sequence] = message
    state.push_lease_end(message)
    state.order.leased(message)
    if message.stored and not message.fresh:
        message.payload = None


def _completed(state: QueueState, event: e.Completed) -> None:
    counters = state.counters
    if event.was is LEASED:
        counters.leased -= 1
    else:
        counters.waiting -= 1
    counters.completed += 1
    message = _step(state, event)
    message.kept_until = event.kept_until
    if event.result is None:
        _leave(state, message, event.at)
        return
    message.payload = event.result
    message.fresh = True
    _drop_lease(state, message, event.was)
    if message.holds_key:
        message.holds_key = False
        free_key(state, message, event.at)
    state.push_end(message)


def _progressed(state: QueueState, event: e.Progressed) -> None:
    _step(state, event).progress = event.progress


def _forgotten(state: QueueState, event: e.Forgotten) -> None:
    message = _step(state, event)
    message.kept_until = 0
    state.settled(message)


def _retried(state: QueueState, event: e.Retried) -> None:
    message = _step(state, event)
    _record(message, event.at, "retried", event.error)
    message.available_at = event.available_at
    if message.options.concurrency_key is not None and message.place is not None:
        message.place = event.available_at
    _wait_again(state, message)


def _released(state: QueueState, event: e.Released) -> None:
    message = _step(state, event)
    message.attempts = event.attempts
    _wait_again(state, message)


def _lapsed(state: QueueState, event: e.Lapsed) -> None:
    message = _step(state, event)
    _record(message, event.at, "lapsed", None)
    _wait_again(state, message)


def _extended(state: QueueState, event: e.Extended) -> None:
    message = _step(state, event)
    message.lease_expires_at = event.lease_expires_at
    state.push_lease_end(message)


def _failed(state: QueueState, event: e.Failed) -> None:
    message = _step(state, event)
    if event.was is LEASED:
        _record(message, event.at, "failed", event.error)
    message.failed_at = event.at
    message.kept_until = event.kept_until
    message.reason = event.reason
    message.error = event.error
    _drop_lease(state, message, event.was)
    if message.holds_key:
        message.holds_key = False
        free_key(state, message, event.at)
    state.push_end(message)


def _expired(state: QueueState, event: e.Expired) -> None:
    _leave(state, _step(state, event), event.at)


def _deleted(state: QueueState, event: e.Deleted) -> None:
    message = _step(state, event)
    if message.move is not None:
        state.moves.pop(message.move, None)
    _leave(state, message, event.at)


def _replaced(state: QueueState, event: e.Replaced) -> None:
    message = _step(state, event)
    message.payload = event.payload
    message.fresh = True
    # It may have come from storage just now; adding what is there already changes nothing.
    state.order.add(message)
    state.push_end(message)


def _requeued(state: QueueState, event: e.Requeued) -> None:
    message = _step(state, event)
    message.available_at = event.available_at
    message.expires_at = event.expires_at
    message.place = event.place
    message.attempts = 0
    message.token_hash = message.holder = message.reason = message.error = None
    if event.takes_key:
        message.holds_key = True
        hold_key(state, message)
    state.order.add(message)
    state.push_end(message)


def _purged(state: QueueState, event: e.Purged) -> None:
    state.purged[event.scope] = event.sequence
    for sequence, message in list(state.messages.items()):
        if state.is_purged(message):
            state.leases.pop(sequence, None)
            if sequence in state.delta or sequence in state.cutting:
                # Its row may be of the other scope and must be removed; a row of this scope dies by its age.
                message.state = State.DELETED
                state.settled(message)
            else:
                del state.messages[sequence]
    if event.scope is Scope.LIVE:
        for message in (*state.delta.values(), *state.cutting.values()):
            message.stored_at = -1
        for message in state.messages.values():
            message.offered = message.placed = -1
            message.lane = None
        state.order = Order(state.messages)
        state.delta_keys.clear()
        state.has_keys = False


def _move_started(state: QueueState, event: e.MoveStarted) -> None:
    message = _step(state, event)
    message.move = event.move
    message.target = event.target
    state.moves[event.move] = message.sequence
    state.next_move = event.move + 1
    _drop_lease(state, message, event.was)
    if message.holds_key:
        message.holds_key = False
        free_key(state, message, event.at)


def _moved(state: QueueState, event: e.Moved) -> None:
    message = _step(state, event)
    state.moves.pop(event.move, None)
    _leave(state, message, event.at)


def _move_returned(state: QueueState, event: e.MoveReturned) -> None:
    message = _step(state, event)
    state.moves.pop(event.move, None)
    message.move = message.target = None
    message.kept_until = event.kept_until
    message.failed_at = message.failed_at or event.at
    message.reason = message.reason or "moved"
    state.push_end(message)


def _move_taken(state: QueueState, event: e.MoveTaken) -> None:
    state.taken[event.source] = event.move


def _paused(state: QueueState, event: e.Paused) -> None:
    state.paused = event.reason


def _resumed(state: QueueState, _: e.Resumed) -> None:
    state.paused = None


def _group_paused(state: QueueState, event: e.GroupPaused) -> None:
    state.paused_groups[event.group] = event.reason


def _group_resumed(state: QueueState, event: e.GroupResumed) -> None:
    state.paused_groups.pop(event.group, None)
    gate = state.order.gates.get(("group", event.group))
    if gate is not None:
        state.order.reopen(gate)


def _configured(state: QueueState, event: e.Configured) -> None:
    state.settings = event.settings
    state.changed_at = event.at
    state.enqueue_mark = event.enqueue_mark
    state.receive_mark = event.receive_mark
    for gate in list(state.order.gates.values()):
        state.order.reopen(gate)


def _claimed(state: QueueState, event: e.Claimed) -> None:
    state.epoch = event.epoch
    # Whoever uses a queue first, claims it first.
    if state.used_at is None:
        state.used_at = event.at


def _enqueue_rate_spent(state: QueueState, event: e.EnqueueRateSpent) -> None:
    state.enqueue_mark = event.mark


def _receive_rate_spent(state: QueueState, event: e.ReceiveRateSpent) -> None:
    state.receive_mark = event.mark


def _scheduled(state: QueueState, event: e.Scheduled) -> None:
    before = state.schedules.get(event.schedule.name)
    last_at = None if before is None else before.last_at
    state.schedules[event.schedule.name] = Planned(event.schedule, event.next_at, last_at)


def _unscheduled(state: QueueState, event: e.Unscheduled) -> None:
    state.schedules.pop(event.name, None)


def _ticked(state: QueueState, event: e.Ticked) -> None:
    planned = state.schedules[event.name]
    planned.last_at = event.last_at
    planned.next_at = event.next_at


def _task_started(state: QueueState, event: e.TaskStarted) -> None:
    state.tasks[event.task.number] = event.task
    state.next_task = event.task.number + 1


def _task_advanced(state: QueueState, event: e.TaskAdvanced) -> None:
    state.tasks[event.task.number] = event.task


def _task_ended(state: QueueState, event: e.TaskEnded) -> None:
    state.tasks.pop(event.task.number, None)


def _step(state: QueueState, event: e.MessageEvent) -> Message:
    """Take the message an event is about into memory and give it the state that follows."""
    sequence = event.message
    message = state.messages.get(sequence)
    if message is None:
        message = state.aside.pop(sequence, None)
        if message is None:
            raise BrokenInvariant(f"{type(event).__name__} of message {sequence}, which is not in memory")
        state.messages[sequence] = message
        if message.place is not None and message.state is WAITING:
            # A stored row that stood for its lane is about to change: the lane must be asked for.
            state.order.lane_of(message).eager = True
    after = TRANSITIONS[type(event)].get(message.state)
    if after is None:
        raise BrokenInvariant(f"{type(event).__name__} of a message that is {message.state.value}")
    message.state = after
    message.as_of = event.sequence
    state.delta[sequence] = message
    return message


def _wait_again(state: QueueState, message: Message) -> None:
    del state.leases[message.sequence]
    state.order.add(message)
    state.order.unleased(message)
    state.push_end(message)


def _drop_lease(state: QueueState, message: Message, was: object) -> None:
    """A message is no longer waiting or leased: what it kept waiting may come forward."""
    if was is LEASED:
        del state.leases[message.sequence]
        state.order.unleased(message)
    elif was is WAITING:
        state.order.gone(message)
    message.lane = None


def _leave(state: QueueState, message: Message, at: int) -> None:
    """A message is settled for good."""
    sequence = message.sequence
    was_leased = state.leases.pop(sequence, None) is not None
    state.settled(message)
    if message.lane is not None:
        if was_leased:
            state.order.unleased(message)
        else:
            state.order.gone(message)
    if message.holds_key:
        free_key(state, message, at)


def _record(message: Message, at: int, outcome: str, error: str | None) -> None:
    attempt = Attempt(message.receives, message.holder, message.received_at, at, outcome, error)
    message.history = (*message.history[1 - KEPT_ATTEMPTS :], attempt)


def hold_key(state: QueueState, message: Message) -> None:
    """The message holds its dedup key while it lives."""
    key = state.key_of(message)
    state.delta_keys[key] = Entry(
        message.sequence, message.dedup_until, live=True, expires_at=message.expires_at, as_of=message.as_of
    )


def free_key(state: QueueState, message: Message, at: int) -> None:
    """The message no longer lives: its key is held for the rest of its window, if there is one."""
    key = state.key_of(message)
    if message.dedup_until > at:
        state.delta_keys[key] = Entry(
            message.sequence, message.dedup_until, live=False, expires_at=None, as_of=message.as_of
        )
    elif state.has_keys:
        state.delta_keys[key] = None
    else:
        state.delta_keys.pop(key, None)


def _duplicated(_state: QueueState, _event: e.Duplicated) -> None:
    """Nothing was stored."""


Change = Callable[[QueueState, Any], None]


def _counted(change: Change) -> Change:
    def change_and_count(state: QueueState, event: e.Event) -> None:
        change(state, event)
        state.counters.fold(event)

    return change_and_count


# The three events of every message's life count by hand: the table would cost them half as much again.
_OF_EVERY_LIFE: dict[type[e.Event], Change] = {
    e.Enqueued: _enqueued,
    e.Received: _received,
    e.Completed: _completed,
}
_OF_SOME: dict[type[e.Event], Change] = {
    e.Retried: _retried,
    e.Released: _released,
    e.Lapsed: _lapsed,
    e.Extended: _extended,
    e.Failed: _failed,
    e.Expired: _expired,
    e.Deleted: _deleted,
    e.Replaced: _replaced,
    e.Requeued: _requeued,
    e.Purged: _purged,
    e.MoveStarted: _move_started,
    e.Moved: _moved,
    e.MoveReturned: _move_returned,
    e.MoveTaken: _move_taken,
    e.Paused: _paused,
    e.Resumed: _resumed,
    e.GroupPaused: _group_paused,
    e.GroupResumed: _group_resumed,
    e.Configured: _configured,
    e.Claimed: _claimed,
    e.EnqueueRateSpent: _enqueue_rate_spent,
    e.ReceiveRateSpent: _receive_rate_spent,
    e.Scheduled: _scheduled,
    e.Unscheduled: _unscheduled,
    e.Ticked: _ticked,
    e.TaskStarted: _task_started,
    e.TaskAdvanced: _task_advanced,
    e.TaskEnded: _task_ended,
    e.Progressed: _progressed,
    e.Forgotten: _forgotten,
    e.Duplicated: _duplicated,
}
_APPLY = _OF_EVERY_LIFE | {kind: _counted(change) for kind, change in _OF_SOME.items()}
