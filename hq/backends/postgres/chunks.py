"""Writing a chunk of a checkpoint into a Postgres database, and keeping the marks of lanes right.

The lanes a chunk touches are those its rows leave and those they enter. Their first rows are told before and
compared after, so a lane whose first row stays costs two index reads and no write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hq.backends.codec import columns_of, encode_settings, encode_snapshot, lanes_of, payload_check
from hq.backends.postgres import statements as sql
from hq.backends.postgres.connections import Connection, named_keys
from hq.domain.checkpoint import Chunk, Snapshot
from hq.domain.lookups import DedupKey, Entry
from hq.domain.messages import LaneId, Message
from hq.errors import RowDamaged

_LANE_NAME = 6
_COLUMNS = (
    "states", "ranks", "availables", "places", "as_ofs", "lane_kinds", "lane_names", "lane_ranks", "marks",
    "ends", "bodies", "queues", "sequences",
)  # fmt: skip


async def write_chunk(connection: Connection, queue: int, chunk: Chunk, wake_at: int | None) -> None:
    """Write a chunk, inside the caller's transaction."""
    sequences = [*(row.sequence for row in chunk.rows), *chunk.gone]
    touched = await touched_lanes(connection, queue, sequences, lanes_of(chunk.rows))
    await _write_rows(connection, queue, chunk.rows)
    if chunk.gone:
        await connection.rows(sql.REMOVE_ROWS, {"queue": queue, "sequences": chunk.gone})
    await mark_lanes(connection, queue, touched)
    await _write_keys(connection, queue, chunk.keys)
    if chunk.snapshot is None:
        await connection.rows(sql.SET_WAKE, {"queue": queue, "wake_at": wake_at})
    else:
        await _write_snapshot(connection, queue, chunk.snapshot, wake_at)


async def touched_lanes(
    connection: Connection, queue: int, sequences: Sequence[int], entered: set[LaneId]
) -> list[Any]:
    """The lanes that rows are in now or will be in, with the first row of each."""
    if not sequences:
        return []
    kinds, names, ranks = ([lane[index] for lane in entered] for index in range(3))
    encoded = [str(name).encode() for name in names]
    values = {"queue": queue, "sequences": sequences, "kinds": kinds, "names": encoded, "ranks": ranks}
    return await connection.rows(sql.TOUCHED, values)


async def mark_lanes(connection: Connection, queue: int, touched: list[Any]) -> None:
    """Mark the first row of each touched lane, and no other row of it."""
    if touched:
        kinds, names, ranks, heads = (list(column) for column in zip(*touched, strict=True))
        values = {"queue": queue, "kinds": kinds, "names": names, "ranks": ranks, "heads": heads}
        await connection.rows(sql.MARK_LANES, values)


async def _write_rows(connection: Connection, queue: int, rows: list[Message]) -> None:
    whole = [row for row in rows if row.payload is not None]
    if whole:
        payloads = [row.payload for row in whole]
        checks = [payload_check(queue, row.sequence, row.payload or b"") for row in whole]
        values = {**_columns(queue, whole), "queue": queue, "payloads": payloads, "checks": checks}
        await connection.rows(sql.WRITE_ROWS, values)
    changed = [row for row in rows if row.payload is None]
    if changed:
        found = await connection.rows(sql.CHANGE_ROWS, {**_columns(queue, changed), "queue": queue})
        if len(found) != len(changed):
            raise RowDamaged(
                f"a row of queue {queue} is not there, and with it a payload that memory relied on"
            )


def _columns(queue: int, rows: list[Message]) -> dict[str, object]:
    """Rows as one array for each column."""
    columns = [list(column) for column in zip(*(columns_of(queue, row) for row in rows), strict=True)]
    columns[_LANE_NAME] = [None if name is None else str(name).encode() for name in columns[_LANE_NAME]]
    return dict(zip(_COLUMNS, columns, strict=True))


async def _write_keys(connection: Connection, queue: int, keys: dict[DedupKey, Entry | None]) -> None:
    freed = [key for key, entry in keys.items() if entry is None]
    if freed:
        await connection.rows(sql.REMOVE_KEYS, {"queue": queue, **named_keys(freed)})
    held = {key: entry for key, entry in keys.items() if entry is not None}
    if held:
        messages, untils, lives, expires, as_ofs = (
            list(column) for column in zip(*held.values(), strict=True)
        )
        values = {
            "messages": messages,
            "untils": untils,
            "lives": lives,
            "expires": expires,
            "as_ofs": as_ofs,
        }
        await connection.rows(sql.WRITE_KEYS, {"queue": queue, **named_keys(list(held)), **values})


async def _write_snapshot(
    connection: Connection, queue: int, snapshot: Snapshot, wake_at: int | None
) -> None:
    settings = encode_settings(queue, snapshot.settings)
    values = {"queue": queue, "settings": settings, "wake_at": wake_at, "epoch": snapshot.epoch}
    await connection.rows(sql.SET_MARK, values)
    blob = encode_snapshot(queue, snapshot)
    await connection.rows(sql.SET_SNAPSHOT, {"queue": queue, "mark": snapshot.sequence, "snapshot": blob})
