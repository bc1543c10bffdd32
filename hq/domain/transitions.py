"""The transition table: which event may meet a message in which state, and what state follows.

Everything that moves a message from one state to another is here, as data; `apply` takes the next state
from it and stops at a missing cell. Two edges are not events: the clock alone turns `delayed` into `ready`
(both are `waiting` here), and a purge takes whole ranges away. docs/states.md is drawn from this table.
"""

from __future__ import annotations

from hq.domain.events import (
    Completed,
    Deleted,
    Event,
    Expired,
    Extended,
    Failed,
    Forgotten,
    Lapsed,
    Moved,
    MoveReturned,
    MoveStarted,
    Progressed,
    Received,
    Released,
    Replaced,
    Requeued,
    Retried,
)
from hq.domain.messages import COMPLETED, FAILED, LEASED, MOVING, WAITING, State

TRANSITIONS: dict[type[Event], dict[State, State]] = {
    Received: {WAITING: LEASED},
    Extended: {LEASED: LEASED},
    Progressed: {LEASED: LEASED},
    Completed: {LEASED: COMPLETED, WAITING: COMPLETED},
    Forgotten: {COMPLETED: COMPLETED},
    Retried: {LEASED: WAITING},
    Released: {LEASED: WAITING},
    Lapsed: {LEASED: WAITING},
    Failed: {LEASED: FAILED, WAITING: FAILED},
    Requeued: {FAILED: WAITING},
    Replaced: {WAITING: WAITING},
    Expired: {WAITING: State.EXPIRED},
    Deleted: {
        WAITING: State.DELETED,
        LEASED: State.DELETED,
        FAILED: State.DELETED,
        MOVING: State.DELETED,
    },
    MoveStarted: {WAITING: MOVING, FAILED: MOVING},
    Moved: {MOVING: State.MOVED},
    MoveReturned: {MOVING: FAILED},
}
