"""What the verbs of a queue answer, with messages named by their ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hq.domain.ids import MessageId
from hq.domain.settings import Rate


# These two answer every enqueue and every completion: not frozen, which would treble their price, and the id
# is written out only for who asks for it.
@dataclass(slots=True)
class Accepted:
    """Which message now holds a payload; `duplicate` if an earlier one already did."""

    message: MessageId
    duplicate: bool

    @property
    def id(self) -> str:
        """The id of the message."""
        return str(self.message)


@dataclass(slots=True)
class Settled:
    """What became of a message: its state, and when it comes again or its lease ends."""

    message: MessageId
    state: str
    until: int | None

    @property
    def id(self) -> str:
        """The id of the message."""
        return str(self.message)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How far the work on a message is, or what came of it: a `result` if completed, an `error` if failed."""

    id: str
    state: str
    attempts: int
    progress: Any
    result: Any
    error: str | None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state in {"completed", "failed"}


@dataclass(frozen=True, slots=True)
class Blocker:
    """One reason why a message waits: a stable code, until when (None: until someone acts), who, why."""

    code: str
    until: int | None
    message_id: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a message is not being received; no blockers means it can be received now."""

    state: str
    blockers: tuple[Blocker, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """A task that runs: what it does with which messages, how many it took, how much it has looked at."""

    number: int
    kind: str
    scope: str
    target: str | None
    group: str | None
    reason: str | None
    rate: Rate | None
    done: int
    percent: int
