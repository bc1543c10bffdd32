"""The journal as a stream: every event is told after it is durable, from any place on, to whoever reads.

A reader has a place in the journal and no buffer. However slow it is, it holds back nobody and costs no
memory; when the journal no longer keeps its place, it is told JournalPruned. An append wakes who has read to
the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from re import sub
from typing import Any, NamedTuple, Protocol, get_args

import anyio
import msgspec

from hq.backends.port import Bounds, JournalEntry
from hq.domain import events as e
from hq.domain.ids import MessageId
from hq.domain.names import is_under, queue_name
from hq.domain.request_keys import producers_key
from hq.errors import InvalidInput, JournalPruned, QueueNotFound

PAGE = 100
ALL = (1 << 31) - 1
MAX_DIGITS = 18
# Payloads may be large and are nobody's business; the rest is bookkeeping, or told in other words.
_UNTOLD = {
    "sequence", "at", "message", "payload", "options", "history", "token_hash", "schedule", "rank", "place",
    "dedup_until", "takes_key", "was", "enqueue_mark", "receive_mark", "mark",
}  # fmt: skip
_NAMES: dict[type, str] = {
    kind: sub(r"(?<!^)([A-Z])", r"_\1", kind.__name__).lower() for kind in get_args(e.Event)
}
_TOLD: dict[type, list[str]] = {
    kind: [one.name for one in fields(kind) if one.name not in _UNTOLD] for kind in get_args(e.Event)
}
KINDS = frozenset(_NAMES.values())
"""What events are called: as in the journal."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened. `cursor` is its place: a watch that begins after it goes on with the next.

    `queue` is None if the queue was deleted since. `hydra` has the names of hydra-mq's events that this is.
    """

    cursor: str
    kind: str
    queue: str | None
    at: int
    message_id: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    hydra: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events, and after which place; without one, from now on."""

    after: str | None = None
    queue: str | None = None
    prefix: str | None = None
    kinds: frozenset[str] | None = None

    def __post_init__(self) -> None:
        if self.after is not None:
            Cursor.parse(self.after)
        if self.queue is not None and self.prefix is not None:
            raise InvalidInput("events are of one queue or under a prefix, not both")
        for name in (self.queue, self.prefix or None):
            if name is not None:
                queue_name(name)
        unknown = sorted((self.kinds or frozenset()) - KINDS)
        if unknown:
            raise InvalidInput(f"there is no event {unknown[0]!r}; there are {', '.join(sorted(KINDS))}")

    def takes(self, name: str | None) -> bool:
        """Whether events of this queue are wanted."""
        if self.queue is not None:
            return name == self.queue
        return not self.prefix or (name is not None and is_under(name, self.prefix))


class Cursor(NamedTuple):
    """A place in the journal: behind this event of the entry at this position."""

    position: int
    event: int = ALL

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """`12` is behind all of the entry at 12, `12.3` behind the fourth event of it."""
        position, dot, index = text.partition(".")
        if not _is_number(position) or (dot and not _is_number(index)):
            raise InvalidInput(f"{text!r} is no place in the journal: it is told with every event")
        return cls(int(position), int(index) if dot else ALL)

    def __str__(self) -> str:
        return str(self.position) if self.event == ALL else f"{self.position}.{self.event}"


class Journal(Protocol):
    """What a watch reads of a node."""

    @property
    def incarnation(self) -> int: ...
    def name(self, number: int) -> str: ...
    async def journal(self, after: int, limit: int) -> list[JournalEntry]: ...
    async def journal_bounds(self) -> Bounds: ...


class Appends:
    """Wakes those who wait for the next append. While nobody does, it costs nothing."""

    def __init__(self) -> None:
        self._next: anyio.Event | None = None

    def next(self) -> anyio.Event:
        """Set when something is appended after now."""
        self._next = self._next or anyio.Event()
        return self._next

    def tell(self) -> None:
        """Something was appended, or nothing will be any more."""
        if self._next is not None:
            self._next.set()
            self._next = None


class Watch:
    """A place in the journal of a node. It moves when a page is given, so giving up a wait loses nothing."""

    def __init__(self, node: Journal, appends: Appends, wanted: Wanted) -> None:
        self._node = node
        self._appends = appends
        self._wanted = wanted
        self._cursor: Cursor | None = None

    @property
    def reached(self) -> str:
        """The place up to which everything wanted was given."""
        return "" if self._cursor is None else str(self._cursor)

    async def begin(self) -> None:
        """Take up the place. What is appended from now on will be told."""
        if self._cursor is not None:
            return
        last = (await self._node.journal_bounds()).last
        cursor = Cursor(last) if self._wanted.after is None else Cursor.parse(self._wanted.after)
        if cursor.position > last:
            raise InvalidInput(f"the journal ends at {last}, before the place {cursor}")
        await self._read(cursor)
        self._cursor = cursor

    async def page(self) -> list[Event]:
        """The next wanted events, at least one, waited for; Closed when there will be no more."""
        await self.begin()
        while True:
            appended = self._appends.next()
            assert self._cursor is not None, "a watch has begun"
            entries = await self._read(self._cursor)
            events = [event for entry in entries for event in self._told(entry, self._cursor)]
            if entries:
                self._cursor = Cursor(entries[-1].position)
            if events:
                return events
            if not entries:
                await appended.wait()

    async def aclose(self) -> None:
        """Nothing is held between two pages."""

    async def _read(self, cursor: Cursor) -> list[JournalEntry]:
        """Entries from the one the cursor is in; JournalPruned if that is gone."""
        if cursor.event == ALL:
            return await self._node.journal(cursor.position, PAGE)
        entries = await self._node.journal(max(0, cursor.position - 1), PAGE)
        if entries and entries[0].position > cursor.position:
            raise JournalPruned(entries[0].position)
        return entries

    def _told(self, entry: JournalEntry, cursor: Cursor) -> list[Event]:
        name = self._name(entry.queue)
        if not self._wanted.takes(name):
            return []
        start = cursor.event + 1 if entry.position == cursor.position else 0
        kinds = self._wanted.kinds
        last = len(entry.events) - 1
        told: list[Event] = []
        for index, event in enumerate(entry.events[start:], start):
            kind = _NAMES[type(event)]
            if kinds is None or kind in kinds:
                place = Cursor(entry.position, ALL if index == last else index)
                told.append(self._event(entry.queue, name, event, str(place)))
        return told

    def _event(self, number: int, name: str | None, event: e.Event, cursor: str) -> Event:
        sequence = event.sequence if isinstance(event, e.Enqueued) else getattr(event, "message", None)
        message_id = None
        if isinstance(sequence, int):
            message_id = str(MessageId(self._node.incarnation, number, sequence))
        return Event(
            cursor, _NAMES[type(event)], name, event.at, message_id, _details(event), hydra_names(event)
        )

    def _name(self, number: int) -> str | None:
        try:
            return self._node.name(number)
        except QueueNotFound:
            return None


def hydra_names(event: e.Event) -> tuple[str, ...]:
    """What hydra-mq calls this: one of its seven events, two, or none."""
    match event:
        case e.Received():
            # An attempt before this one was retried or its lease ended, and the wait after that is over.
            return ("MESSAGE_UNLOCKED", "MESSAGE_DEQUEUED") if event.attempts > 1 else ("MESSAGE_DEQUEUED",)
        case e.Completed():
            return ("MESSAGE_PROCESSED",)
        case e.Failed():
            return ("MESSAGE_EXPIRED",)
        case e.Retried():
            return ("MESSAGE_LOCKED",)
        case e.Lapsed():
            return ("MESSAGE_CLEANED",)
        case e.Enqueued() if event.origin_id is None and "hq-schedule" in dict(event.options.headers):
            return ("MESSAGE_SCHEDULED",)
    return ()


def _details(event: e.Event) -> dict[str, Any]:
    details: dict[str, Any] = {name: msgspec.to_builtins(getattr(event, name)) for name in _TOLD[type(event)]}
    if isinstance(event, e.Enqueued):
        options = event.options
        details["payload_bytes"] = len(event.payload)
        details["content_type"] = options.content_type
        for name in ("priority", "group", "concurrency_key"):
            details[name] = getattr(options, name)
        details["dedup_key"] = producers_key(options.dedup_key)
        details["schedule"] = dict(options.headers).get("hq-schedule")
    elif isinstance(event, e.Scheduled):
        details["name"], details["spec"] = event.schedule.name, event.schedule.spec
    return {name: value for name, value in details.items() if value is not None}


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
