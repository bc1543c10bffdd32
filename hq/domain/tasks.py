"""Tasks: work on many messages in steps, whose cursor is in the journal."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from hq.domain.messages import Message, State
from hq.domain.settings import Rate

MAX_TASKS = 100
STEP = 100


class TaskKind(enum.Enum):
    """What a task does with each message."""

    REQUEUE = "requeue"
    MOVE = "move"
    DELETE = "delete"


class Scope(enum.StrEnum):  # hashes in C, and every stored row that is read asks what was purged
    """Which messages: those that live (waiting, leased) or the dead letters."""

    LIVE = "live"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Task:
    """A running task: everything up to `up_to` that matches, in order of sequence."""

    number: int
    kind: TaskKind
    scope: Scope
    target: str | None
    group: str | None
    reason: str | None
    rate: Rate | None
    up_to: int
    cursor: int = 0
    done: int = 0
    next_at: int = 0

    def takes(self, message: Message) -> bool:
        """Whether the task is about this message."""
        wanted = State.FAILED if self.scope is Scope.FAILED else State.WAITING
        return (
            message.state is wanted
            and (self.group is None or message.options.group == self.group)
            and (self.reason is None or message.reason == self.reason)
        )

    def step(self) -> int:
        """How many messages one step may take."""
        return STEP if self.rate is None else min(STEP, self.rate.burst)

    def advanced(self, cursor: int, done: int, next_at: int) -> Task:
        """The task after a step."""
        return replace(self, cursor=cursor, done=done, next_at=next_at)
