"""A backend for tests and development: the port over dictionaries. Nothing survives it."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from heapq import nsmallest
from pathlib import Path

from hq.backends.codec import encode_events
from hq.backends.port import (
    Batch,
    Bounds,
    Ending,
    InboxRow,
    JournalEntry,
    JournalRow,
    Loaded,
    QueueRow,
    Retention,
)
from hq.backends.retention import Kept, is_wanted, tell_lost
from hq.domain import lookups as look
from hq.domain.checkpoint import Chunk, Snapshot
from hq.domain.events import Claimed, Enqueued, Event, Replaced
from hq.domain.listing import STATES
from hq.domain.lookups import (
    END,
    SMALL_PAYLOAD,
    Ahead,
    DedupKey,
    Entry,
    Found,
    FoundBounds,
    FoundRows,
    Key,
    Lookup,
    Rest,
)
from hq.domain.messages import LEASED, WAITING, LaneId, Message
from hq.domain.settings import Settings
from hq.domain.tasks import Scope
from hq.errors import InvalidInput, JournalPruned, QueueExists, QueueNotFound

# What an event costs beside its payload, roughly; and the most that one step of pruning removes.
EVENT_BYTES = 200
STEP_BYTES = 4 << 20


class _Index:
    """A table's rows, sorted as the pages read them."""

    def __init__(self, rows: dict[int, Message]) -> None:
        self.ends = sorted((row.ends_at, row.sequence) for row in rows.values() if row.ends_at is not None)
        self.shelves: defaultdict[int, list[Key]] = defaultdict(list)
        self.lanes: defaultdict[LaneId, list[Key]] = defaultdict(list)
        for row in rows.values():
            if row.state is WAITING and row.lane_id is not None:
                self.lanes[row.lane_id].append((row.place or 0, row.sequence))
            elif row.state is WAITING:
                self.shelves[row.rank].append((row.available_at, row.sequence))
        for lane in self.lanes.values():
            lane.sort()
            first = rows[lane[0][1]]
            self.shelves[first.rank].append((first.available_at, first.sequence))
        for shelf in self.shelves.values():
            shelf.sort()


class _Table:
    """One queue: its journal, its rows and keys, and its snapshot."""

    def __init__(self, row: QueueRow) -> None:
        self.row = row
        self.epoch = 0
        self.events: list[Event] = []
        self.forgotten = 0
        """How many events were pruned; what is left begins with the next sequence."""
        self.snapshot = Snapshot(row.settings)
        self.rows: dict[int, Message] = {}
        self.keys: dict[DedupKey, Entry] = {}
        self.index: _Index | None = None
        self.cleaned: dict[Scope, int] = {}
        """The purges whose rows are gone."""

    @property
    def last(self) -> int:
        """The sequence of the last event."""
        return self.forgotten + len(self.events)

    def append(self, batch: Batch) -> Ending:
        if batch.events[0].sequence != self.last + 1 or batch.epoch < self.epoch:
            return Ending.NOT_OWNER
        self.events += batch.events
        claims = [event.epoch for event in batch.events if isinstance(event, Claimed)]
        self.epoch = max(self.epoch, *claims) if claims else self.epoch
        return Ending.DURABLE

    def tail(self, after: int, limit: int) -> list[Event]:
        if after < self.forgotten:
            raise JournalPruned(self.forgotten + 1)
        start = after - self.forgotten
        return self.events[start : start + limit]

    def forget(self, up_to: int) -> None:
        del self.events[: up_to - self.forgotten]
        self.forgotten = up_to

    def prune(self, now: int, limit: int) -> int:
        purges = self.snapshot.purged
        keys = [
            key
            for key, entry in self.keys.items()
            if (not entry.live and entry.until <= now) or entry.as_of < purges[Scope.LIVE]
        ][:limit]
        rows = [] if self.cleaned == purges else self._purged(purges)[:limit]
        for key in keys:
            del self.keys[key]
        for sequence in rows:
            del self.rows[sequence]
        if rows:
            self.index = None
        else:
            self.cleaned = dict(purges)
        return len(keys) + len(rows)

    def _purged(self, purges: dict[Scope, int]) -> list[int]:
        # A lane's first row stays while others are behind it: it is where a reader will find them.
        lanes = (self.index or _Index(self.rows)).lanes.values()
        heads = {lane[0][1] for lane in lanes if len(lane) > 1}
        purged_at = {state: purge for scope, purge in purges.items() for state in STATES[scope]}
        return [
            sequence
            for sequence, row in self.rows.items()
            if sequence not in heads and max(sequence, row.as_of) < purged_at.get(row.state, 0)
        ]

    def write(self, chunk: Chunk) -> None:
        self.index = None
        for row in chunk.rows:
            if row.payload is None:
                row.payload = self.rows[row.sequence].payload
            self.rows[row.sequence] = row.row()
        for sequence in chunk.gone:
            self.rows.pop(sequence, None)
        for key, entry in chunk.keys.items():
            self.keys.pop(key, None)
            if entry is not None:
                self.keys[key] = entry
        self.snapshot = deepcopy(chunk.snapshot) or self.snapshot

    def find(self, lookup: Lookup) -> Found:
        index = self.index = self.index or _Index(self.rows)
        match lookup:
            case look.ShelfPage(rank, start, until, limit):
                return self._page(index, index.shelves[rank], (start, until, limit))
            case look.LanePage(lane, start, limit):
                keys = index.lanes.get(lane, [])
                page = self._page(index, keys, (start[:2], END[0], limit))
                return page._replace(rest=self._ahead(keys, bisect_left(keys, page.rest[:2])))
            case look.EndsPage(start, until, limit):
                return self._page(index, index.ends, (start, until, limit))
            case look.Bounds():
                shelves = {rank: shelf[0] for rank, shelf in index.shelves.items() if shelf}
                return FoundBounds(shelves, index.ends[0] if index.ends else END)
            case look.RowOf(sequence):
                return _given(self.rows[sequence]) if sequence in self.rows else None
            case look.PayloadOf(sequence):
                return self.rows[sequence].payload if sequence in self.rows else None
            case look.KeyOf(key):
                return self.keys.get(key)
            case look.DelayedAfter(instant, since):
                waiting = (row for row in self.rows.values() if row.state is WAITING and row.as_of >= since)
                return sum(row.available_at > instant for row in waiting)
            case look.InInbox():
                return 0
            case look.SequencePage(scope, after, limit):
                wanted = (n for n, row in self.rows.items() if n > after and row.state in STATES[scope])
                found = nsmallest(limit + 1, wanted)
                rest = (0, found[limit]) if len(found) > limit else END
                return FoundRows([_given(self.rows[sequence]) for sequence in found[:limit]], rest, [])

    def _page(self, index: _Index, shelf: list[Key], bounds: tuple[Key, int, int]) -> FoundRows:
        start, until, limit = bounds
        first = bisect_left(shelf, start)
        last = max(first, min(bisect_left(shelf, (until + 1, -1)), first + limit))
        rows = [_given(self.rows[sequence]) for _, sequence in shelf[first:last]]
        lanes = [self._ahead(index.lanes[row.lane_id], 1) if row.lane_id else END for row in rows]
        return FoundRows(rows, shelf[last] if last < len(shelf) else END, lanes)

    def _ahead(self, lane: list[Key], position: int) -> Rest:
        if position >= len(lane):
            return END
        row = self.rows[lane[position][1]]
        return Ahead(*lane[position], row.rank, row.available_at)


def _given(row: Message) -> Message:
    """A copy without a large payload."""
    copy = row.row()
    if copy.payload is not None and len(copy.payload) > SMALL_PAYLOAD:
        copy.payload = None
    return copy


class MemoryBackend:
    """All queues of one process that forgets."""

    durability = "nothing"
    lines = 1
    has_inbox = False

    def __init__(self) -> None:
        self._tables: dict[int, _Table] = {}
        self._journal: list[JournalEntry] = []
        self._forgotten = 0
        """How many entries were pruned; what is left begins with the next position."""
        self._bytes = 0
        self._archived = 0
        self._last_number = 0
        self.incarnation = 0
        self.former: Mapping[int, Mapping[int, int]] = {}

    async def create(self, name: str, settings: Settings) -> QueueRow:
        if any(table.row.name == name for table in self._tables.values()):
            raise QueueExists
        self._last_number += 1
        row = QueueRow(self._last_number, name, settings, None)
        self._tables[row.number] = _Table(row)
        return row

    async def drop(self, queue: int) -> None:
        self._tables.pop(queue, None)

    async def queues(self) -> list[QueueRow]:
        return [table.row for table in self._tables.values()]

    async def unsettled(self) -> list[int]:
        tables = self._tables.items()
        return [n for n, table in tables if table.last > table.snapshot.sequence]

    async def load(self, queue: int) -> Loaded:
        table = self._table(queue)
        leases = [_given(row) for row in table.rows.values() if row.state is LEASED]
        return Loaded(deepcopy(table.snapshot), leases)

    async def tail(self, queue: int, after: int, limit: int) -> list[Event]:
        return self._table(queue).tail(after, limit)

    async def fetch(self, queue: int, lookups: Sequence[Lookup]) -> list[Found]:
        table = self._table(queue)
        return [table.find(lookup) for lookup in lookups]

    async def append(self, batches: Sequence[Batch]) -> list[Ending]:
        tables = [self._tables.get(batch.queue) for batch in batches]
        endings = [
            Ending.NOT_OWNER if table is None else table.append(batch)
            for table, batch in zip(tables, batches, strict=True)
        ]
        for batch, ending in zip(batches, endings, strict=True):
            if ending is Ending.DURABLE:
                position = self._forgotten + len(self._journal) + 1
                self._journal.append(JournalEntry(position, batch.queue, batch.epoch, batch.events))
                self._bytes += _size(batch.events)
        return endings

    def owns(self, queue: int) -> bool:  # noqa: ARG002 -- nobody else can reach it
        return True

    async def inbox(self, busy: Collection[int]) -> list[InboxRow]:  # noqa: ARG002 -- it has none
        return []

    async def checkpoint(self, queue: int, chunk: Chunk, wake_at: int | None) -> None:
        table = self._table(queue)
        table.write(chunk)
        table.row = table.row._replace(settings=table.snapshot.settings, wake_at=wake_at)

    async def journal(self, after: int, limit: int) -> list[JournalEntry]:
        if 0 < after < self._forgotten:
            raise JournalPruned(self._forgotten + 1)
        start = max(0, after - self._forgotten)
        return self._journal[start : start + limit]

    async def journal_rows(self, after: int, upto: int, limit: int) -> list[JournalRow]:
        if after < self._forgotten:
            raise JournalPruned(self._forgotten + 1)
        start = after - self._forgotten
        return [
            JournalRow(
                entry.position,
                entry.queue,
                entry.epoch,
                entry.events[0].sequence,
                entry.events[-1].sequence,
                encode_events(entry.queue, entry.epoch, entry.events),
            )
            for entry in self._journal[start : start + limit]
            if entry.position <= upto
        ]

    async def journal_reach(self, after: int, events: int) -> int:
        reached = max(after, self._forgotten)
        for entry in self._journal[reached - self._forgotten :]:
            events -= len(entry.events)
            if events < 0 and reached > after:
                break
            reached = entry.position
        return reached

    async def journal_count(self, after: int, upto: int) -> int:
        if after < self._forgotten:
            raise JournalPruned(self._forgotten + 1)
        return sum(len(entry.events) for entry in self._journal if after < entry.position <= upto)

    async def bounds(self) -> Bounds:
        journal = self._journal
        if not journal:
            return Bounds(0, 0, self._archived)
        return Bounds(journal[0].position, journal[-1].position, self._archived)

    async def archived(self, upto: int) -> int:
        self._archived = max(self._archived, upto)
        return self._archived

    async def check(self) -> None:
        """Memory always takes writes."""

    async def prune(self, now: int, retention: Retention, limit: int) -> int:
        doomed = self._doomed(now, retention, limit)
        for entry in doomed:
            if entry.queue in self._tables:
                self._tables[entry.queue].forget(entry.events[-1].sequence)
        del self._journal[: len(doomed)]
        self._forgotten += len(doomed)
        return len(doomed) + sum(table.prune(now, limit) for table in self._tables.values())

    async def copy(self, to: Path) -> None:
        raise InvalidInput(f"what is in memory cannot be kept in {to}; give it a database")

    async def facts(self) -> dict[str, str | int]:
        return {"backend": "memory", "durability": self.durability}

    async def damage(self, most: int) -> list[str]:  # noqa: ARG002 - objects are what they are
        return []

    async def compact(self, limit: int) -> int:  # noqa: ARG002 -- memory has no pages
        return 0

    async def close(self) -> None:
        self._tables.clear()

    def _doomed(self, now: int, retention: Retention, limit: int) -> list[JournalEntry]:
        """The oldest entries that are kept no longer; what they take is no longer counted."""
        doomed: list[JournalEntry] = []
        freed = 0
        for entry in self._journal[: min(limit, len(self._journal) - 1)]:
            events = entry.events
            kept = Kept(self._bytes - freed, self._archived)
            wanted = is_wanted(entry.position, events[-1].at, now, retention, kept)
            table = self._tables.get(entry.queue)
            if wanted or (table is not None and events[-1].sequence > table.snapshot.sequence):
                break
            size = _size(events)
            if doomed and freed + size > STEP_BYTES:
                break
            doomed.append(entry)
            freed += size
        self._bytes -= freed
        if doomed:
            tell_lost(doomed[0].position, doomed[-1].position, self._archived, retention)
        return doomed

    def _table(self, queue: int) -> _Table:
        table = self._tables.get(queue)
        if table is None:
            raise QueueNotFound
        return table


def _size(events: Sequence[Event]) -> int:
    payloads = sum(len(event.payload) for event in events if isinstance(event, Enqueued | Replaced))
    return EVENT_BYTES * len(events) + payloads
