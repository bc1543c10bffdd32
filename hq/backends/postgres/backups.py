"""Backups of a schema: to a file that the SQLite backend could open itself, and back from any such file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import anyio
from anyio.to_thread import run_sync as run

from hq.backends.postgres import statements as sql
from hq.backends.postgres.connections import Connection
from hq.backends.sqlite.backups import HAS_INBOX, begin, check, finish, make_schema, reading, renew, told
from hq.errors import StoreNotEmpty

PAGE = 500
MAKE_INBOX = """
    CREATE TABLE inbox (id INTEGER PRIMARY KEY, queue INTEGER, ticket TEXT, payload BLOB, options TEXT)"""
MAKE_STORE = "INSERT INTO store (incarnation, indexed_to) VALUES (?, 0)"
_NOTHING: tuple[str, ...] = ()


class Copied(NamedTuple):
    """A table that both have; `texts` are bytes here, and `switches` are numbers there."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    texts: tuple[str, ...] = _NOTHING
    switches: tuple[str, ...] = _NOTHING

    @property
    def listed(self) -> str:
        """Its columns, as a statement lists them."""
        return ", ".join(self.columns)


TABLES = (
    Copied(
        "queues", ("number", "name", "settings", "wake_at", "epoch", "dropped"), ("number",),
        switches=("dropped",),
    ),
    Copied(
        "journal", ("position", "queue", "first", "last", "epoch", "claimed", "at", "body"), ("position",)
    ),
    Copied("checkpoints", ("queue", "mark", "snapshot"), ("queue",)),
    Copied(
        "messages",
        (
            "queue", "sequence", "state", "rank", "available_at", "place", "as_of", "lane_kind", "lane_name",
            "lane_rank", "marked", "ends_at", "payload_check", "body", "payload",
        ),
        ("queue", "sequence"), texts=("lane_name",), switches=("marked",),
    ),
    Copied(
        "dedup", ("queue", "scope", "key", "message", "until", "live", "expires_at", "as_of"),
        ("queue", "scope", "key"), texts=("scope", "key"), switches=("live",),
    ),
    Copied("former", ("queue", "incarnation", "sequence"), ("queue", "incarnation")),
)  # fmt: skip
INBOX = Copied("inbox", ("id", "queue", "ticket", "payload", "options"), ("queue", "id"))


async def copy_schema(connection: Connection, to: Path) -> None:
    """Write all there is to a new file."""
    part = await run(begin, to)
    try:
        await run(make_schema, part)
        file = await run(partial(sqlite3.connect, part, check_same_thread=False))
        try:
            [(incarnation,)] = await connection.rows(sql.INCARNATION)
            await run(file.execute, MAKE_STORE, (incarnation,))
            for table in TABLES:
                await _out(connection, table, file)
            if await connection.rows(sql.HAS_INBOX):
                await run(file.execute, MAKE_INBOX)
                await _out(connection, INBOX, file)
            await run(file.commit)
        finally:
            file.close()
        await run(finish, part, to)
    finally:
        with anyio.CancelScope(shield=True):
            await run(partial(part.unlink, missing_ok=True))


async def fill_schema(connection: Connection, backup: Path) -> None:
    """Put a backup into a schema that has no store yet, all or nothing."""
    await run(check, backup)
    folder = await run(TemporaryDirectory)
    try:
        # A copy is brought up to date, for a backup may be of an older schema and stays as it is.
        copy = Path(folder.name) / "backup.db"
        await run(_copied, backup, copy)
        file = await run(partial(sqlite3.connect, copy, check_same_thread=False))
        try:
            async with connection.transaction():
                await connection.rows(sql.LOCK_DOOR, connection.schema.locks)
                if await connection.rows(sql.INCARNATION):
                    raise StoreNotEmpty
                await _fill(connection, file)
        finally:
            file.close()
    finally:
        with anyio.CancelScope(shield=True):
            await run(folder.cleanup)


def _copied(backup: Path, copy: Path) -> None:
    with told(), closing(reading(backup)) as source:
        source.execute("VACUUM INTO ?", (str(copy),))
    renew(copy)


async def _fill(connection: Connection, file: sqlite3.Connection) -> None:
    has_inbox = await _fetched(file, HAS_INBOX)
    for table in (*TABLES, INBOX) if has_inbox else TABLES:
        await _in(connection, table, file)
    [(incarnation,)] = await _fetched(file, "SELECT incarnation FROM store")
    await connection.rows(sql.CREATE_STORE, {"incarnation": incarnation})
    await connection.rows(sql.SET_PRUNED)
    await connection.rows(sql.SET_NUMBER)
    await connection.rows(sql.SET_POSITION)
    await connection.rows(sql.SET_INBOX)


async def _out(connection: Connection, table: Copied, file: sqlite3.Connection) -> None:
    key = ", ".join(table.key)
    places = ", ".join("?" for _ in table.columns)
    insert = f"INSERT INTO {table.name} ({table.listed}) VALUES ({places})"
    select = f"SELECT {table.listed} FROM hq.{table.name}"
    last: Sequence[Any] | None = None
    while True:
        names = [f":{name}" for name in table.key]
        after = f" WHERE ({key}) > ({', '.join(names)})" if last is not None else ""
        values = {} if last is None else {name[1:]: value for name, value in zip(names, last, strict=True)}
        rows = await connection.rows(f"{select}{after} ORDER BY {key} LIMIT {PAGE}", values)
        if not rows:
            return
        last = [rows[-1][name] for name in table.key]
        await run(file.executemany, insert, [_changed(table, row, bytes.decode, int) for row in rows])


async def _in(connection: Connection, table: Copied, file: sqlite3.Connection) -> None:
    extra = {"queues": {"node": ""}}.get(table.name, {})
    cursor = await run(file.execute, f"SELECT {table.listed} FROM {table.name}")
    while rows := await run(cursor.fetchmany, PAGE):
        filled = [(*_changed(table, row, str.encode, bool), *extra.values()) for row in rows]
        await connection.fill(table.name, (*table.columns, *extra), filled)


async def _fetched(file: sqlite3.Connection, statement: str) -> list[Any]:
    return await run(lambda: file.execute(statement).fetchall())


def _changed(
    table: Copied, row: Sequence[Any], text: Callable[[Any], Any], switch: Callable[[Any], Any]
) -> tuple[Any, ...]:
    """A row as the other database has it: what one has as text is bytes in the other, and so are truths."""
    made = []
    for name, value in zip(table.columns, row, strict=True):
        if value is not None and name in table.texts:
            made.append(text(value))
        elif name in table.switches:
            made.append(switch(value))
        else:
            made.append(value)
    return tuple(made)
