"""What one may ask of a queue. Messages are named by their sequence; a token of None means by id alone.

Plain slotted classes, not frozen: freezing would treble the price of building one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hq.domain.messages import PLAIN, Attempt, Options
from hq.domain.schedules import Schedule
from hq.domain.settings import Rate, Settings
from hq.domain.tasks import Scope, TaskKind
from hq.domain.tokens import TOKEN_BYTES

MAX_RECEIVE = 1_000
MAX_BROWSE = 1_000


@dataclass(slots=True)
class Enqueue:
    payload: bytes
    options: Options = PLAIN


@dataclass(slots=True)
class TakeIn:
    """What an application enqueued in its own transaction; `unfit` says why its options cannot be read."""

    ticket: str
    payload: bytes
    options: Options
    unfit: str | None = None


@dataclass(slots=True)
class Receive:
    limit: int = 1
    lease_ms: int | None = None
    holder: str | None = None
    token_bytes: int = TOKEN_BYTES


@dataclass(slots=True)
class Complete:
    message: int
    token: bytes | None = None
    result: bytes | None = None


@dataclass(slots=True)
class Retry:
    message: int
    token: bytes | None = None
    delay_ms: int | None = None
    error: str | None = None


@dataclass(slots=True)
class Fail:
    message: int
    token: bytes | None = None
    error: str | None = None


@dataclass(slots=True)
class Release:
    message: int
    token: bytes | None = None


@dataclass(slots=True)
class Extend:
    message: int
    token: bytes | None = None
    lease_ms: int | None = None


@dataclass(slots=True)
class Progress:
    message: int
    token: bytes | None = None
    progress: bytes = b"null"


@dataclass(slots=True)
class Delete:
    message: int


@dataclass(slots=True)
class DeleteByKey:
    dedup_key: str
    group: str | None = None


@dataclass(slots=True)
class Replace:
    dedup_key: str
    payload: bytes
    group: str | None = None


@dataclass(slots=True)
class Requeue:
    message: int


@dataclass(slots=True)
class Purge:
    scope: Scope = Scope.LIVE


@dataclass(slots=True)
class Pause:
    reason: str = ""


@dataclass(slots=True)
class Resume:
    pass


@dataclass(slots=True)
class PauseGroup:
    group: str
    reason: str = ""


@dataclass(slots=True)
class ResumeGroup:
    group: str


@dataclass(slots=True)
class Configure:
    settings: Settings


@dataclass(slots=True)
class Claim:
    epoch: int


@dataclass(slots=True)
class SetSchedule:
    schedule: Schedule
    next_at: int


@dataclass(slots=True)
class RemoveSchedule:
    name: str


@dataclass(slots=True)
class ListSchedules:
    """All schedules of the queue with their next ticks, by name."""


@dataclass(slots=True)
class Tick:
    """The ticks that are due, oldest first, and the one after them; a library above knows the calendar."""

    name: str
    due: tuple[int, ...]
    next_at: int


@dataclass(slots=True)
class StartTask:
    kind: TaskKind
    scope: Scope
    target: str | None = None
    group: str | None = None
    reason: str | None = None
    rate: Rate | None = None


@dataclass(slots=True)
class AdvanceTask:
    number: int


@dataclass(slots=True)
class CancelTask:
    number: int


@dataclass(slots=True)
class ListTasks:
    """The tasks that run, by number."""


@dataclass(slots=True)
class NextMove:
    """The first message that is on its way to another queue, for the courier to carry."""


@dataclass(slots=True)
class TakeMove:
    """A message from another queue; `number` is its place in that queue's series of moves."""

    source: int
    number: int
    payload: bytes
    options: Options
    origin_id: str
    history: tuple[Attempt, ...] = field(default=())


@dataclass(slots=True)
class SettleMove:
    number: int


@dataclass(slots=True)
class ReturnMove:
    number: int


@dataclass(slots=True)
class Wake:
    """Do what time has made due: end leases, expire messages, drop old dead letters."""


@dataclass(slots=True)
class Peek:
    limit: int = 1


@dataclass(slots=True)
class Get:
    message: int


@dataclass(slots=True)
class Outcome:
    """How far the work on a message is, or what came of it."""

    message: int


@dataclass(slots=True)
class Explain:
    message: int


@dataclass(slots=True)
class Count:
    """The queue's stats."""


@dataclass(slots=True)
class Dates:
    """Since when the queue is used, and when its settings were last changed."""


@dataclass(slots=True)
class Browse:
    """Live messages or dead letters in order of their sequence, from after a given one."""

    scope: Scope
    after: int = 0
    limit: int = 100


Command = (
    Enqueue | Receive | Complete | Retry | Fail | Release | Extend | Delete | DeleteByKey | Replace | Requeue
    | Purge | Pause | Resume | PauseGroup | ResumeGroup | Configure | Claim | SetSchedule | RemoveSchedule
    | ListSchedules | Tick | StartTask | AdvanceTask | CancelTask | ListTasks | NextMove | TakeMove
    | SettleMove | ReturnMove | Wake | Peek | Get | Explain | Count | Browse | Progress | Outcome | TakeIn
    | Dates
)  # fmt: skip
