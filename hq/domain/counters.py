"""Counts kept by folding events alone, so they are right whatever part of the messages is in memory."""

from __future__ import annotations

from dataclasses import dataclass

from hq.domain.events import Enqueued, Event, Lapsed, Purged, Received, Retried
from hq.domain.messages import State
from hq.domain.tasks import Scope
from hq.domain.transitions import TRANSITIONS

# Where the event does not say which state was before, the table has only one.
_ONLY_FROM = {kind: next(iter(cells)) for kind, cells in TRANSITIONS.items() if len(cells) == 1}


@dataclass(slots=True)
class Counters:
    """How many messages are where, and how many ended how. Conservation is checked by QueueState."""

    waiting: int = 0
    leased: int = 0
    failed: int = 0
    moving: int = 0
    enqueued: int = 0
    completed: int = 0
    expired: int = 0
    deleted: int = 0
    purged: int = 0
    moved: int = 0
    receives: int = 0
    retries: int = 0
    lapses: int = 0

    def fold(self, event: Event) -> None:
        """Count one event: by the table, but for what is not in it."""
        kind = type(event)
        if kind is Enqueued:
            self.enqueued += 1
            self.waiting += 1
        elif isinstance(event, Purged):
            self._purge(event)
        elif kind in TRANSITIONS:
            was: State = getattr(event, "was", None) or _ONLY_FROM[kind]
            after = TRANSITIONS[kind][was].value
            setattr(self, was.value, getattr(self, was.value) - 1)
            setattr(self, after, getattr(self, after) + 1)
            self.receives += kind is Received
            self.retries += kind is Retried
            self.lapses += kind is Lapsed

    def live(self) -> int:
        """What capacity counts."""
        return self.waiting + self.leased

    def balance(self) -> int:
        """Zero, always: what came in is somewhere or has ended somehow."""
        kept = self.waiting + self.leased + self.failed + self.moving
        ended = self.completed + self.expired + self.deleted + self.purged + self.moved
        return self.enqueued - kept - ended

    def _purge(self, event: Purged) -> None:
        self.purged += event.count
        if event.scope is Scope.LIVE:
            self.waiting = self.leased = 0
        else:
            self.failed = 0
