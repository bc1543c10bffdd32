"""Pages of the journal: bounded by events and by bytes, with at least one row if there is one."""

from __future__ import annotations

from typing import Any

from hq.backends.codec import decode_events
from hq.backends.port import JournalEntry
from hq.domain.events import Event
from hq.errors import HQError, JournalDamaged, JournalPruned

PAGE_BYTES = 8 << 20
# Smaller, because columns are made of them while other requests wait for the interpreter.
ROWS_BYTES = 2 << 20


class EventsMissing(Exception):
    """A queue's rows do not begin, or go on, where they should."""

    def __init__(self, queue: int, after: int, first: int) -> None:
        super().__init__(queue, after, first)
        self.queue, self.after, self.first = queue, after, first

    def told(self, mark: int) -> HQError:
        """Up to the queue's mark they were pruned; after it they are lost."""
        if self.after < mark:
            return JournalPruned(self.first)
        return JournalDamaged(
            f"events {self.after + 1} to {self.first - 1} of queue {self.queue} are not in the journal"
        )


def within(sizes: list[Any], most_events: int | None, most_bytes: int = PAGE_BYTES) -> list[int]:
    """The positions of the first rows that stay within the bounds, at least one."""
    positions: list[int] = []
    events = held = 0
    for position, first, last, length in sizes:
        if positions and held + length > most_bytes:
            break
        positions.append(position)
        events += last - first + 1
        held += length
        if most_events is not None and events >= most_events:
            break
    return positions


def followed(queue: int, after: int, rows: list[Any]) -> list[Event]:
    """The events of a queue after a sequence, from the rows that hold them."""
    events: list[Event] = []
    for _, _, epoch, first, last, body in rows:
        if first > after + len(events) + 1:
            raise EventsMissing(queue, after, first)
        events += decode_events(queue, epoch, first, last, body)[max(0, after + 1 - first) :]
    return events


def decoded(rows: list[Any]) -> list[JournalEntry]:
    """Rows as entries. A damaged one is told when it comes first; what is before it is given."""
    found: list[JournalEntry] = []
    for position, queue, epoch, first, last, body in rows:
        try:
            events = decode_events(queue, epoch, first, last, body)
        except JournalDamaged as error:
            if found:
                break
            raise JournalDamaged(f"{error}; it is at position {position}") from error
        found.append(JournalEntry(position, queue, epoch, events))
    return found
