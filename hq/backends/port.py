"""The contract of a backend, in prose and types. Every backend passes tests/backends.

A backend stores two things per queue: a **journal**, the events in order of their sequence, and a
**checkpoint**, rows of messages and dedup keys with a snapshot that says up to which sequence, the mark,
they are true. It holds no rule: it sorts, finds and keeps. What a message is, who is next and what a
duplicate is are decided in hq.domain.

**Durable** means: it survives the process, and on a backend with a disk the power too. `append` returns
`Ending.DURABLE` for a queue only then. The other endings are kept apart because callers are told different
things:

- `REFUSED`: nothing was written, and certainly will not be. The caller may be told no.
- `NOT_OWNER`: nothing was written, because another writer has claimed the queue with a newer epoch. This
  node must stop serving it.
- `UNKNOWN`: it may or may not be written, now or later. The actor must die and load again; its callers are
  told that the outcome is unknown, never that it was refused.

One `append` carries batches of many queues; each ends by itself, and one queue's ending says nothing of its
neighbours'. A batch is written whole or not at all. Its first sequence must follow the queue's last one, and
its epoch must not be older than the newest claimed; a batch that fails either is `NOT_OWNER`. A batch that
holds a `Claimed` raises the epoch. Appends of different queues may run side by side, as many as `lines`.

**The inbox**, where a backend has one, holds what applications enqueued in transactions of their own, once
those have committed. `inbox` reads it. A batch names the rows whose messages it brings, and they leave the
inbox with its events, in one write: a batch of whose rows one is gone is `NOT_OWNER` too. So each is taken
once, and what was not written is still there. Rows of dropped queues may be dropped at any time.

**Ownership.** Where several processes can reach a store, a queue has one owner at a time, and `load` makes
this node the owner or raises NotOwner. Whoever has lost a queue is refused by its next append. An answer
that takes no append is another matter: it may be given only while `owns` says so.

**Fetching** answers lookups (hq/domain/lookups.py) as of one moment, in their order. Every page is read from
a key onwards; none may cost more because of how much comes before it. A row comes back equal to what was
written, except that a row written with payload None keeps the payload it had, and that a payload larger than
`SMALL_PAYLOAD` is left out of every row, loaded leases too: `PayloadOf` brings it.

**A checkpoint chunk** is written whole: rows, removals, keys and, if it carries one, the snapshot, which
moves the mark. The caller writes a chunk only when the events it reflects are durable, and never while a
fetch of the same queue is under way. Rows and keys older than the snapshot's purges may be dropped at any
time after it.

**Pruning** removes what nobody may want any more, one bounded step at a time: the oldest of the journal, as
long as it is older than its retention or the journal is larger; dedup keys that nobody holds and whose window
is over; rows and keys older than their queue's purges; whatever dropped queues left behind. Nothing after a
queue's mark is ever pruned from the journal, nor its last entry: positions go on from it. Where retention
waits for an archive, neither is what `archived` has not been told of, until the journal is larger than a
bound of its own; what goes then is told in the log. Whoever reads from before its beginning is told
JournalPruned. What a step leaves empty may be given back to the system, but for a reserve. A step may be
taken at any time, beside everything else; no append waits for more than one. Nothing depends on it but room,
so one that fails, or of which nobody knows how it ended, is taken again.

A dropped queue's number is not used again.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from hq.domain.checkpoint import Chunk, Snapshot
from hq.domain.commands import TakeIn
from hq.domain.events import Event
from hq.domain.lookups import Found, Lookup
from hq.domain.messages import Message
from hq.domain.settings import Settings


class Ending(enum.Enum):
    """How an append ended for one queue."""

    DURABLE = "durable"
    REFUSED = "refused"
    NOT_OWNER = "not_owner"
    UNKNOWN = "unknown"


class QueueRow(NamedTuple):
    """A queue as it is listed. `wake_at` is when it next has something to do by itself."""

    number: int
    name: str
    settings: Settings
    wake_at: int | None


class Batch(NamedTuple):
    """The events one append writes for one queue, under the writer's epoch."""

    queue: int
    epoch: int
    events: Sequence[Event]
    taken: Sequence[int] = ()
    """The rows of the inbox that these events deal with."""


class InboxRow(NamedTuple):
    """What an application enqueued in its own transaction; ids grow as they are given out."""

    id: int
    queue: int
    command: TakeIn


class Loaded(NamedTuple):
    """Where loading starts: the snapshot at the mark, and the rows of all leases."""

    snapshot: Snapshot
    leases: list[Message]


class JournalEntry(NamedTuple):
    """One batch as the journal keeps it; positions grow over all queues."""

    position: int
    queue: int
    epoch: int
    events: Sequence[Event]


class JournalRow(NamedTuple):
    """The same as it is stored: its events, from the first sequence to the last, are in `body` (codec.py)."""

    position: int
    queue: int
    epoch: int
    first: int
    last: int
    body: bytes


class Retention(NamedTuple):
    """How much of the journal is kept: what is younger than this, and no more than so many bytes.

    What is not archived is kept up to so many bytes of its own, if that is said.
    """

    keep_ms: int
    keep_bytes: int
    unarchived_bytes: int | None = None


class Bounds(NamedTuple):
    """From which position the journal is kept, its last, and up to where it is archived; 0 if none is."""

    first: int
    last: int
    archived: int = 0


class Examined(NamedTuple):
    """What storage is and how it is set, and a sentence for each thing in it that cannot be read."""

    facts: dict[str, str | int]
    damage: list[str]


class Backend(Protocol):
    """What hq asks of storage."""

    incarnation: int
    """32 random bits, new when the store is made or restored; part of every message's id."""

    former: Mapping[int, Mapping[int, int]]
    """By queue and former incarnation, the last sequence that was restored; ids up to it are still good."""

    durability: str
    """What an append survives: `power`, `process`, or `nothing`."""

    has_inbox: bool
    """Whether applications can enqueue in transactions of their own."""

    lines: int
    """How many appends may be under way at once. A queue has one of them at most."""

    async def create(self, name: str, settings: Settings) -> QueueRow:
        """Make a queue; raises QueueExists if the name is taken."""

    async def drop(self, queue: int) -> None:
        """Bury a queue: its name is free at once, its number never again."""

    async def queues(self) -> list[QueueRow]:
        """All queues there are, by number."""

    async def unsettled(self) -> list[int]:
        """The queues whose journal goes on after their mark, so that their `wake_at` may be out of date."""

    async def load(self, queue: int) -> Loaded:
        """Where loading a queue starts."""

    async def tail(self, queue: int, after: int, limit: int) -> list[Event]:
        """Events of a queue after a sequence, at least one batch of them if there is one."""

    async def fetch(self, queue: int, lookups: Sequence[Lookup]) -> list[Found]:
        """The answers to lookups, in their order."""

    async def append(self, batches: Sequence[Batch]) -> list[Ending]:
        """Write batches to the journal; one ending each, in their order."""

    async def inbox(self, busy: Collection[int]) -> list[InboxRow]:
        """The first rows of the inbox by id, a bounded part; of each queue its first, of the busy ones none.

        Every queue has its turn, however much there is of another.
        """

    def owns(self, queue: int) -> bool:
        """Whether a queue that was loaded is certainly still this node's."""

    async def checkpoint(self, queue: int, chunk: Chunk, wake_at: int | None) -> None:
        """Write one chunk of a checkpoint."""

    async def journal(self, after: int, limit: int) -> list[JournalEntry]:
        """Entries after a position, over all queues."""

    async def journal_rows(self, after: int, upto: int, limit: int) -> list[JournalRow]:
        """Rows after a position and up to another, as they are stored, for readers of many.

        Raises JournalPruned if anything after the position is no longer kept, also after position 0.
        """

    async def journal_reach(self, after: int, events: int) -> int:
        """The last position up to which no more than so many events come after another, or one row does."""

    async def journal_count(self, after: int, upto: int) -> int:
        """How many events come after a position and up to another; else JournalPruned."""

    async def bounds(self) -> Bounds:
        """Which positions the journal has."""

    async def archived(self, upto: int) -> int:
        """Note that all up to a position is archived; up to where that now is. It never goes back."""

    async def facts(self) -> dict[str, str | int]:
        """What it is and how it is set, for operators."""

    async def damage(self, most: int) -> list[str]:
        """Read all there is; a sentence for each thing that cannot be read, for so many of them."""

    async def copy(self, to: Path) -> None:
        """Write all there is, as of one moment, to a new SQLite file, beside all other work."""

    async def check(self) -> None:
        """Return if storage takes writes now; else raise a StorageError."""

    async def prune(self, now: int, retention: Retention, limit: int) -> int:
        """Remove up to so many things of each kind; how many that were, 0 when nothing is left to do."""

    async def compact(self, limit: int) -> int:
        """Give up to so many free pages back to the system, a reserve too; how many that were."""

    async def close(self) -> None:
        """Let go of everything; what was durable stays."""
