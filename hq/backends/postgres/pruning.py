"""Removing what nobody may want any more from a Postgres database, a bounded part at a time.

What that is, port.py says. What a step leaves empty, autovacuum makes room of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic

from hq.backends.port import Retention
from hq.backends.postgres import statements as sql
from hq.backends.postgres.appends import Appends
from hq.backends.postgres.connections import Limits, Pool
from hq.backends.postgres.positions import final_position
from hq.backends.retention import Kept, Pace, doomed, purges_in, tell_lost
from hq.domain.listing import STATES
from hq.domain.tasks import Scope


class Pruning:
    """What pruning knows between its steps."""

    def __init__(self, pool: Pool, appends: Appends, limits: Limits) -> None:
        self._pool = pool
        self._appends = appends
        self._limits = limits
        # Bytes of the journal without what this process has appended; None until they are counted.
        self._bytes: int | None = None
        # Per queue the mark it was last found clean at, and its purges then.
        self._clean: dict[int, tuple[int, dict[Scope, int]]] = {}
        self._entries, self._keys, self._rows = Pace(), Pace(), Pace()

    async def step(self, now: int, retention: Retention, limit: int) -> int:
        """Remove up to so many things of each kind; 0 when nothing is left to do."""
        removed = await self._journal(now, retention, limit)
        keys = {"now": now, "limit": self._keys.within(limit)}
        removed += await self._remove(self._keys, [(sql.PRUNE_KEYS, keys)])
        removed += await self._dropped(limit)
        return removed + await self._purged(limit)

    async def _journal(self, now: int, retention: Retention, limit: int) -> int:
        async with self._pool.lend() as connection:
            if self._bytes is None:
                [(counted,)] = await connection.rows(sql.JOURNAL_BYTES)
                self._bytes = int(counted) - self._appends.bytes
            # Beyond it, a row that is committed late would be missed by whoever reads in order.
            final = await final_position(connection, self._limits.deadline_s)
            [(_, highest, archived)] = await connection.rows(sql.JOURNAL_BOUNDS, {"up_to": final})
            values = {"up_to": (highest or 0) - 1, "limit": self._entries.within(limit)}
            oldest = await connection.rows(sql.OLDEST_JOURNAL, values)
            marks: dict[int, int] = dict(await connection.rows(sql.MARKS))
        kept = self._bytes + self._appends.bytes
        count, freed = doomed(oldest, marks, now, retention, Kept(kept, archived))
        if not count:
            return 0
        # Counted anew if nobody can say whether this was written.
        self._bytes = None
        up_to = {"up_to": oldest[count - 1][0]}
        begun = monotonic()
        async with self._pool.lend() as connection, connection.transaction():
            await connection.rows(sql.PRUNE_JOURNAL, up_to)
            await connection.rows(sql.SET_PRUNED_TO, up_to)
        self._entries.took(monotonic() - begun, count)
        tell_lost(oldest[0][0], oldest[count - 1][0], archived, retention)
        self._bytes = kept - freed - self._appends.bytes
        return count

    async def _dropped(self, limit: int) -> int:
        async with self._pool.lend() as connection:
            found = await connection.rows(sql.DROPPED_WITH_ROWS)
        if not found:
            return 0
        [(queue,)] = found
        place = {"queue": queue, "limit": self._rows.within(limit)}
        tables = (
            sql.PRUNE_DROPPED_ROWS,
            sql.PRUNE_DROPPED_KEYS,
            sql.PRUNE_DROPPED_INBOX,
            sql.PRUNE_DROPPED_SNAPSHOT,
        )
        return await self._remove(self._rows, [(statement, place) for statement in tables])

    async def _purged(self, limit: int) -> int:
        """Clean queues whose mark has moved since they were last clean, until something was removed."""
        async with self._pool.lend() as connection:
            marks: dict[int, int] = dict(await connection.rows(sql.MARKS))
        for queue, mark in marks.items():
            cleaned, purges = self._clean.get(queue, (0, {}))
            if mark == cleaned:
                continue
            async with self._pool.lend() as connection:
                now = purges_in(queue, await connection.rows(sql.SNAPSHOT, {"queue": queue}))
            removed = 0 if now == purges else await self._remove_purged(queue, now, limit)
            if removed:
                return removed
            self._clean[queue] = mark, now
        return 0

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
        begun = monotonic()
        async with self._pool.lend() as connection, connection.transaction():
            for statement, values in statements:
                removed += len(await connection.rows(statement, values))
        pace.took(monotonic() - begun, removed)
        return removed
