"""Writing a chunk of a checkpoint into one SQLite file, and keeping the marks of lanes right.

The lanes a chunk touches are those its rows leave and those they enter. Their first rows are noted before
and compared after, so a lane whose first row stays costs two index reads and no write.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from hq.backends.codec import columns_of, encode_settings, encode_snapshot, lanes_of, payload_check
from hq.backends.sqlite import statements as sql
from hq.backends.sqlite.connections import Connection
from hq.domain.checkpoint import Chunk, Snapshot
from hq.domain.lookups import DedupKey, Entry
from hq.domain.messages import LaneId, Message
from hq.errors import RowDamaged


async def write_chunk(connection: Connection, queue: int, chunk: Chunk, wake_at: int | None) -> None:
    """Write a chunk, inside the caller's transaction."""
    sequences = [*(row.sequence for row in chunk.rows), *chunk.gone]
    touched = await touch_lanes(connection, queue, sequences, lanes_of(chunk.rows))
    await _write_rows(connection, queue, chunk.rows)
    await remove_rows(connection, queue, chunk.gone)
    if touched:
        await mark_lanes(connection, queue)
    await _write_keys(connection, queue, chunk.keys)
    if chunk.snapshot is None:
        await connection.rows(sql.SET_WAKE, {"queue": queue, "wake_at": wake_at})
    else:
        await _write_snapshot(connection, queue, chunk.snapshot, wake_at)


async def touch_lanes(
    connection: Connection, queue: int, sequences: Sequence[int], entered: Iterable[LaneId]
) -> bool:
    """Note the lanes that rows are in now or will be in, and the first row of each; whether there are any."""
    await connection.rows(sql.FORGET_TOUCHED)
    place = {"queue": queue, "sequences": json.dumps(sequences)}
    left = await connection.rows(sql.TOUCH_STORED, place) if sequences else []
    new = await connection.many(sql.TOUCH_LANE, list(entered))
    if left or new:
        await connection.rows(sql.NOTE_HEADS, {"queue": queue})
    return bool(left or new)


async def remove_rows(connection: Connection, queue: int, sequences: Sequence[int]) -> None:
    """Remove rows that may be there; the caller has touched their lanes."""
    if sequences:
        await connection.rows(sql.REMOVE_ROWS, {"queue": queue, "sequences": json.dumps(sequences)})


async def mark_lanes(connection: Connection, queue: int) -> None:
    """Mark the first row of each touched lane, and no other row of it."""
    await connection.rows(sql.UNMARK, {"queue": queue})
    await connection.rows(sql.MARK, {"queue": queue})


async def _write_rows(connection: Connection, queue: int, rows: list[Message]) -> None:
    whole = [
        (*columns_of(queue, row), row.payload, payload_check(queue, row.sequence, row.payload))
        for row in rows
        if row.payload is not None
    ]
    changed = [columns_of(queue, row) for row in rows if row.payload is None]
    await connection.many(sql.WRITE_ROW, whole)
    if await connection.many(sql.CHANGE_ROW, changed) != len(changed):
        raise RowDamaged(f"a row of queue {queue} is not there, and with it a payload that memory relied on")


async def _write_keys(connection: Connection, queue: int, keys: dict[DedupKey, Entry | None]) -> None:
    freed = [(queue, *key) for key, entry in keys.items() if entry is None]
    held = [(queue, *key, *entry[:2], entry.live, *entry[3:]) for key, entry in keys.items() if entry]
    await connection.many(sql.REMOVE_KEY, freed)
    await connection.many(sql.WRITE_KEY, held)


async def _write_snapshot(
    connection: Connection, queue: int, snapshot: Snapshot, wake_at: int | None
) -> None:
    settings = encode_settings(queue, snapshot.settings)
    values = {"queue": queue, "settings": settings, "wake_at": wake_at, "epoch": snapshot.epoch}
    await connection.rows(sql.SET_MARK, values)
    blob = encode_snapshot(queue, snapshot)
    await connection.rows(sql.SET_SNAPSHOT, {"queue": queue, "mark": snapshot.sequence, "snapshot": blob})
