"""Removing what nobody may want any more from one SQLite file, a bounded part at a time.

What that is, port.py says. When none of it is left, free pages go back to the file system, but for a reserve
that is soon used again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic

from hq.backends.port import Retention
from hq.backends.retention import Kept, Pace, doomed, purges_in, tell_lost
from hq.backends.sqlite import statements as sql
from hq.backends.sqlite.connections import Readers
from hq.backends.sqlite.writer import Writer
from hq.domain.listing import STATES
from hq.domain.tasks import Scope

# So many pages stay free, or this part of the file if that is more.
RESERVE_PAGES = 256
RESERVE_PART = 10


class Pruning:
    """What pruning knows between its steps."""

    def __init__(self, readers: Readers, writer: Writer) -> None:
        self._readers = readers
        self._writer = writer
        # Bytes of the journal without what this process has appended; None until they are counted.
        self._bytes: int | None = None
        # Per queue the mark it was last found clean at, and its purges then.
        self._clean: dict[int, tuple[int, dict[Scope, int]]] = {}
        self._entries, self._keys, self._rows = Pace(), Pace(), Pace()

    async def step(self, now: int, retention: Retention, limit: int) -> int:
        """Remove up to so many things of each kind, or give pages back; 0 when nothing is left to do."""
        removed = await self._journal(now, retention, limit)
        keys = {"now": now, "limit": self._keys.within(limit)}
        removed += await self._remove(self._keys, [(sql.PRUNE_KEYS, keys)])
        removed += await self._dropped(limit)
        removed += await self._purged(limit)
        return removed or await self._give_surplus(limit)

    async def compact(self, limit: int) -> int:
        """Give up to so many free pages back to the file system; how many that were."""
        free, _ = await self._pages()
        await self._writer.script(f"PRAGMA incremental_vacuum({limit:d})")
        left, _ = await self._pages()
        return max(0, free - left)

    async def _journal(self, now: int, retention: Retention, limit: int) -> int:
        async with self._readers.lend() as connection, connection.transaction("BEGIN"):
            if self._bytes is None:
                [(counted,)] = await connection.rows(sql.JOURNAL_BYTES)
                self._bytes = counted - self._writer.appended_bytes
            [(highest,)] = await connection.rows(sql.HIGHEST_POSITION)
            oldest = await connection.rows(sql.OLDEST_JOURNAL, {"limit": self._entries.within(limit)})
            marks: dict[int, int] = dict(await connection.rows(sql.MARKS))
            [(archived,)] = await connection.rows(sql.ARCHIVED_TO)
        kept = self._bytes + self._writer.appended_bytes
        oldest = [row for row in oldest if row[0] != highest]
        count, freed = doomed(oldest, marks, now, retention, Kept(kept, archived))
        if not count:
            return 0
        up_to = oldest[count - 1][0]
        places = [(queue, first) for _, queue, first, *_ in oldest[:count]]
        # Counted anew if nobody can say whether this was written.
        self._bytes = None
        async with self._writer.transaction() as connection:
            begun = monotonic()
            await connection.rows(sql.PRUNE_JOURNAL, {"up_to": up_to})
            await connection.many(sql.PRUNE_INDEX, places)
        self._entries.took(monotonic() - begun, count)
        tell_lost(oldest[0][0], up_to, archived, retention)
        self._bytes = kept - freed - self._writer.appended_bytes
        return count

    async def _dropped(self, limit: int) -> int:
        async with self._readers.lend() as connection:
            found = await connection.rows(sql.DROPPED_WITH_ROWS)
        if not found:
            return 0
        [(queue,)] = found
        place = {"queue": queue, "limit": self._rows.within(limit)}
        tables = (sql.PRUNE_DROPPED_ROWS, sql.PRUNE_DROPPED_KEYS, sql.PRUNE_DROPPED_SNAPSHOT)
        return await self._remove(self._rows, [(statement, place) for statement in tables])

    async def _purged(self, limit: int) -> int:
        """Clean queues whose mark has moved since they were last clean, until something was removed."""
        async with self._readers.lend() as connection:
            marks: dict[int, int] = dict(await connection.rows(sql.MARKS))
        for queue, mark in marks.items():
            cleaned, purges = self._clean.get(queue, (0, {}))
            if mark == cleaned:
                continue
            now = await self._purges(queue)
            removed = 0 if now == purges else await self._remove_purged(queue, now, limit)
            if removed:
                return removed
            self._clean[queue] = mark, now
        return 0

    async def _purges(self, queue: int) -> dict[Scope, int]:
        async with self._readers.lend() as connection:
            found = await connection.rows(sql.SNAPSHOT, {"queue": queue})
        return purges_in(queue, found)

    async def _remove_purged(self, queue: int, purges: dict[Scope, int], limit: int) -> int:
        statements: list[tuple[str, Mapping[str, object]]] = []
        for scope, purged in purges.items():
            values = {"queue": queue, "purged": purged, "limit": self._rows.within(limit)}
            statements += [(sql.PRUNE_PURGED, {**values, "state": state.value}) for state in STATES[scope]]
            if scope is Scope.LIVE:
                statements.append((sql.PRUNE_PURGED_KEYS, values))
        return await self._remove(self._rows, statements)

    async def _remove(self, pace: Pace, statements: Sequence[tuple[str, Mapping[str, object]]]) -> int:
        removed = 0
        async with self._writer.transaction() as connection:
            begun = monotonic()
            for statement, values in statements:
                removed += len(await connection.rows(statement, values))
        pace.took(monotonic() - begun, removed)
        return removed

    async def _give_surplus(self, limit: int) -> int:
        free, pages = await self._pages()
        surplus = free - max(RESERVE_PAGES, pages // RESERVE_PART)
        return await self.compact(min(surplus, limit)) if surplus > 0 else 0

    async def _pages(self) -> tuple[int, int]:
        """How many pages are free, of how many."""
        async with self._readers.lend() as connection:
            [(free,)] = await connection.rows("PRAGMA freelist_count")
            [(pages,)] = await connection.rows("PRAGMA page_count")
        return free, pages
