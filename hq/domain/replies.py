"""What a queue answers. A refusal is a CallerError given back as the reply."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from hq.domain.events import Event
from hq.domain.lookups import Lookup
from hq.domain.messages import Attempt, Message, Options
from hq.domain.schedules import Planned
from hq.domain.tasks import Task
from hq.errors import CallerError


@dataclass(slots=True)
class Accepted:
    """The message that now holds this payload, and since when; `duplicate` if an earlier one already did."""

    message: int
    duplicate: bool = False
    enqueued_at: int | None = field(default=None, compare=False)


@dataclass(slots=True)
class Delivery:
    """One received message with the token that proves its lease."""

    message: int
    token: bytes
    payload: bytes
    options: Options
    enqueued_at: int
    receives: int
    attempts: int
    lease_expires_at: int
    origin_id: str | None
    history: tuple[Attempt, ...]
    progress: bytes | None = None


@dataclass(slots=True)
class Settled:
    """What became of a message: its state, and when it comes again or its lease ends."""

    message: int
    state: str
    until: int | None = None


@dataclass(slots=True)
class Done:
    """The queue did as it was told; `count` messages were touched."""

    count: int = 0


@dataclass(slots=True)
class Seen:
    """A message as it is, in its state at the time of the look."""

    message: Message
    state: str


@dataclass(slots=True)
class Outcome:
    """How far the work on a message is; a result if it is completed, an error if it is failed."""

    message: int
    state: str
    attempts: int
    progress: bytes | None
    result: bytes | None
    error: str | None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state in {"completed", "failed"}


class Blocker(NamedTuple):
    """One reason why a message waits: a stable code, until when (None: until someone acts), who, why."""

    code: str
    until: int | None = None
    message: int | None = None
    reason: str | None = None


@dataclass(slots=True)
class Explanation:
    """Why a message is not being received; no blockers means it can be received now."""

    state: str
    blockers: tuple[Blocker, ...]


@dataclass(slots=True)
class Stats:
    """A queue in numbers. ready + delayed + leased + failed + moving + all that is settled = enqueued."""

    ready: int
    delayed: int
    leased: int
    failed: int
    moving: int
    enqueued: int
    completed: int
    expired: int
    deleted: int
    purged: int
    moved: int
    receives: int
    retries: int
    lapses: int
    paused: str | None
    next_lease_end: int | None
    sequence: int
    """The last one given to an event: no message of now has a higher."""
    inbox: int
    """How many wait in the inbox until there is room for them; they are not counted as enqueued."""


@dataclass(slots=True)
class Used:
    """Since when the queue is used, and when its settings were last changed."""

    used_at: int
    changed_at: int


@dataclass(slots=True)
class Carried:
    """A message on its way to another queue."""

    number: int
    target: str
    message: Message


@dataclass(slots=True)
class Started:
    """The number of a task that now runs."""

    number: int


class Again:
    """Not yet: apply these events, then decide the same command again."""

    __slots__ = ()


AGAIN = Again()

Reply = (
    Accepted | list[Delivery] | Settled | Done | Seen | list[Seen] | Explanation | Stats | Carried | Started
    | Used | Outcome | Planned | list[Planned] | list[Task] | None | CallerError | Again
)  # fmt: skip


# Events to apply and append, and what to answer once they are durable.
Decision = tuple[list[Event], Reply]


@dataclass(slots=True)
class Needs:
    """Memory lacks these; nothing has changed. Fetch, absorb, decide again."""

    lookups: list[Lookup]
