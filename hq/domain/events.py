"""What has happened, in order. Values are absolute (attempt 3, never +1), so an event can be read alone.

Every event has its own sequence, and `was` where counting needs the state before. The journal names an
event by its kind, which never changes its meaning; a new meaning is a new kind. Plain slotted classes,
not frozen: see commands.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hq.domain.messages import Attempt, Options, State
from hq.domain.schedules import Schedule
from hq.domain.settings import Settings
from hq.domain.tasks import Scope, Task

VERSION = 1


@dataclass(slots=True)
class Enqueued:
    sequence: int
    at: int
    payload: bytes
    options: Options
    rank: int
    available_at: int
    expires_at: int | None
    place: int | None
    dedup_until: int
    origin_id: str | None = None
    history: tuple[Attempt, ...] = ()
    takes_key: bool = True
    kind: ClassVar[int] = 1


@dataclass(slots=True)
class Received:
    sequence: int
    at: int
    message: int
    receives: int
    attempts: int
    token_hash: bytes
    holder: str | None
    lease_expires_at: int
    kind: ClassVar[int] = 2


@dataclass(slots=True)
class Completed:
    """The work is done; a result is kept until then, if the producer asked for one."""

    sequence: int
    at: int
    message: int
    was: State
    result: bytes | None = None
    kept_until: int = 0
    kind: ClassVar[int] = 3


@dataclass(slots=True)
class Retried:
    sequence: int
    at: int
    message: int
    available_at: int
    error: str | None
    kind: ClassVar[int] = 4


@dataclass(slots=True)
class Released:
    sequence: int
    at: int
    message: int
    attempts: int
    kind: ClassVar[int] = 5


@dataclass(slots=True)
class Lapsed:
    """The lease ended by itself; the message waits again in its place."""

    sequence: int
    at: int
    message: int
    kind: ClassVar[int] = 6


@dataclass(slots=True)
class Extended:
    sequence: int
    at: int
    message: int
    lease_expires_at: int
    kind: ClassVar[int] = 7


@dataclass(slots=True)
class Failed:
    sequence: int
    at: int
    message: int
    was: State
    reason: str
    error: str | None
    kept_until: int
    kind: ClassVar[int] = 8


@dataclass(slots=True)
class Expired:
    sequence: int
    at: int
    message: int
    kind: ClassVar[int] = 9


@dataclass(slots=True)
class Deleted:
    sequence: int
    at: int
    message: int
    was: State
    reason: str
    kind: ClassVar[int] = 10


@dataclass(slots=True)
class Replaced:
    sequence: int
    at: int
    message: int
    payload: bytes
    kind: ClassVar[int] = 11


@dataclass(slots=True)
class Requeued:
    sequence: int
    at: int
    message: int
    available_at: int
    expires_at: int | None
    place: int | None
    takes_key: bool
    kind: ClassVar[int] = 12


@dataclass(slots=True)
class Purged:
    """Everything of this scope that was last changed before this event is gone."""

    sequence: int
    at: int
    scope: Scope
    count: int
    kind: ClassVar[int] = 13


@dataclass(slots=True)
class MoveStarted:
    sequence: int
    at: int
    message: int
    was: State
    move: int
    target: str
    kind: ClassVar[int] = 14


@dataclass(slots=True)
class Moved:
    sequence: int
    at: int
    message: int
    move: int
    kind: ClassVar[int] = 15


@dataclass(slots=True)
class MoveReturned:
    sequence: int
    at: int
    message: int
    move: int
    kept_until: int
    kind: ClassVar[int] = 16


@dataclass(slots=True)
class MoveTaken:
    sequence: int
    at: int
    source: int
    move: int
    kind: ClassVar[int] = 17


@dataclass(slots=True)
class Paused:
    sequence: int
    at: int
    reason: str
    kind: ClassVar[int] = 18


@dataclass(slots=True)
class Resumed:
    sequence: int
    at: int
    kind: ClassVar[int] = 19


@dataclass(slots=True)
class GroupPaused:
    sequence: int
    at: int
    group: str
    reason: str
    kind: ClassVar[int] = 20


@dataclass(slots=True)
class GroupResumed:
    sequence: int
    at: int
    group: str
    kind: ClassVar[int] = 21


@dataclass(slots=True)
class Configured:
    sequence: int
    at: int
    settings: Settings
    enqueue_mark: int
    receive_mark: int
    kind: ClassVar[int] = 22


@dataclass(slots=True)
class Claimed:
    sequence: int
    at: int
    epoch: int
    kind: ClassVar[int] = 23


@dataclass(slots=True)
class EnqueueRateSpent:
    sequence: int
    at: int
    mark: int
    kind: ClassVar[int] = 24


@dataclass(slots=True)
class ReceiveRateSpent:
    sequence: int
    at: int
    mark: int
    kind: ClassVar[int] = 25


@dataclass(slots=True)
class Scheduled:
    sequence: int
    at: int
    schedule: Schedule
    next_at: int
    kind: ClassVar[int] = 26


@dataclass(slots=True)
class Unscheduled:
    sequence: int
    at: int
    name: str
    kind: ClassVar[int] = 27


@dataclass(slots=True)
class Ticked:
    """The ticks up to `last_at` are dealt with; the messages they yield follow in the same append."""

    sequence: int
    at: int
    name: str
    last_at: int
    next_at: int
    messages: int
    kind: ClassVar[int] = 28


@dataclass(slots=True)
class TaskStarted:
    sequence: int
    at: int
    task: Task
    kind: ClassVar[int] = 29


@dataclass(slots=True)
class TaskAdvanced:
    sequence: int
    at: int
    task: Task
    kind: ClassVar[int] = 30


@dataclass(slots=True)
class TaskEnded:
    sequence: int
    at: int
    task: Task
    outcome: str
    kind: ClassVar[int] = 31


@dataclass(slots=True)
class Progressed:
    sequence: int
    at: int
    message: int
    progress: bytes
    kind: ClassVar[int] = 32


@dataclass(slots=True)
class Forgotten:
    """The result of a completed message was kept long enough."""

    sequence: int
    at: int
    message: int
    kind: ClassVar[int] = 33


@dataclass(slots=True)
class Duplicated:
    """What was enqueued under this ticket is a duplicate of the message: nothing was stored."""

    sequence: int
    at: int
    message: int
    ticket: str
    kind: ClassVar[int] = 34


MessageEvent = (
    Received | Completed | Retried | Released | Lapsed | Extended | Failed | Expired | Deleted | Replaced
    | Requeued | MoveStarted | Moved | MoveReturned | Progressed | Forgotten
)  # fmt: skip

Event = (
    Enqueued | MessageEvent | Purged | MoveTaken | Paused | Resumed | GroupPaused | GroupResumed | Configured
    | Claimed | EnqueueRateSpent | ReceiveRateSpent | Scheduled | Unscheduled | Ticked | TaskStarted
    | TaskAdvanced | TaskEnded | Duplicated
)  # fmt: skip
