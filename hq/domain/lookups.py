"""What the domain may ask of storage, and the answers. Storage holds no rule: it sorts and finds.

A key is (instant, sequence). A shelf is one priority's waiting rows by (available_at, sequence), of which
the index holds only those without a lane and the first row of each lane; a lane is its waiting rows by
(place, sequence). Every range is read from a key onwards, never from the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hq.domain.messages import LaneId, Message
from hq.domain.tasks import Scope

Key = tuple[int, int]
START: Key = (-1, -1)
END: Key = (1 << 62, 0)
DedupKey = tuple[str, str]
SMALL_PAYLOAD = 16_384
"""A row of any answer comes without a payload larger than this."""


class Ahead(NamedTuple):
    """A stored row that was not read, at its place in its lane, and where it is on the shelves."""

    place: int
    sequence: int
    rank: int
    available_at: int


Rest = Key | Ahead


class Entry(NamedTuple):
    """Who holds a dedup key: while that message lives, and in any case until `until`.

    `expires_at` is the message's, so that one which is over but not yet swept does not keep its key.
    """

    message: int
    until: int
    live: bool
    expires_at: int | None
    as_of: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """For each priority with stored waiting rows, the key of its first; and the first key in `ends`."""


@dataclass(frozen=True, slots=True)
class ShelfPage:
    """Marked rows of a priority from a key on that are available by `until`."""

    rank: int
    start: Key
    until: int
    limit: int


@dataclass(frozen=True, slots=True)
class LanePage:
    """Waiting rows of a lane from a key on, in the lane's order, whenever they are available."""

    lane: LaneId
    start: Rest
    limit: int


@dataclass(frozen=True, slots=True)
class EndsPage:
    """Rows that time takes away, by (ends_at, sequence), from a key on up to `until`."""

    start: Key
    until: int
    limit: int


@dataclass(frozen=True, slots=True)
class RowOf:
    """One message's row in whatever state it is stored."""

    message: int


@dataclass(frozen=True, slots=True)
class PayloadOf:
    """The payload of one message's row, however large."""

    message: int


@dataclass(frozen=True, slots=True)
class KeyOf:
    """Who holds a dedup key."""

    key: DedupKey


@dataclass(frozen=True, slots=True)
class SequencePage:
    """Rows of a scope by sequence, after a given one."""

    scope: Scope
    after: int
    limit: int


@dataclass(frozen=True, slots=True)
class DelayedAfter:
    """How many waiting rows, not older than `since`, become available after an instant."""

    instant: int
    since: int


@dataclass(frozen=True, slots=True)
class InInbox:
    """How many of the queue wait in the inbox."""


Lookup = (
    Bounds | ShelfPage | LanePage | EndsPage | RowOf | PayloadOf | KeyOf | SequencePage | DelayedAfter
    | InInbox
)  # fmt: skip


class FoundBounds(NamedTuple):
    """Answers Bounds."""

    shelves: dict[int, Key]
    ends: Key


class FoundRows(NamedTuple):
    """Answers the pages: rows, and the key of the first row not given, END if there is none.

    Of a lane that row is given as Ahead. A shelf page also gives, per row, where its lane goes on in storage.
    """

    rows: list[Message]
    rest: Rest
    lanes: list[Rest]


Found = FoundBounds | FoundRows | Message | bytes | Entry | int | None
