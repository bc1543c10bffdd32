"""Opening a SQLite file: made if it is not there, its settings read back, its schema brought up to date."""

from __future__ import annotations

import enum
import os
import secrets
import sys
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import anyio.to_thread

from hq.backends.sqlite import statements as sql
from hq.backends.sqlite.connections import Connection
from hq.backends.sqlite.schema import REVISION
from hq.backends.sqlite.writer import index_journal
from hq.errors import DatabaseMissing, DatabaseReadOnly, StorageUnsafe

_MEBIBYTE = 1 << 20


class Durability(enum.Enum):
    """What an append survives once it is told durable: the loss of power, or of the process alone."""

    POWER = "power"
    PROCESS = "process"


def make_file(path: Path) -> None:
    """Make the file if there is none, for its owner alone; SQLite gives its side files the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DatabaseMissing(f"the folder of {path} is not there; make it first") from error
    except (PermissionError, OSError) as error:
        raise DatabaseReadOnly(
            f"{path} cannot be written ({error.strerror}); change its owner or mode"
        ) from error


class Limits(NamedTuple):
    """How long a call may take, and how long it waits for a locked file; how large the file may become."""

    deadline_s: float = 30.0
    busy_ms: int = 5_000
    max_bytes: int | None = None


async def prepare(connection: Connection, path: Path, durability: Durability, limits: Limits) -> int:
    """Make the writing connection and the file ready; returns the store's incarnation."""
    await _set_up(connection, durability, limits)
    if not await _is_current(connection):
        await anyio.to_thread.run_sync(_migrate, path)
    await connection.rows(sql.CREATE_STORE, {"incarnation": secrets.randbits(32)})
    await connection.rows(sql.TOUCHED_TABLE)
    more = True
    while more:
        async with connection.transaction():
            more = await index_journal(connection)
    [(incarnation,)] = await connection.rows(sql.INCARNATION)
    number: int = incarnation
    return number


def _migrate(path: Path) -> None:
    # Alembic takes a quarter of a second to import, and mostly there is nothing to do.
    import_module("hq.backends.sqlite.migrate").migrate(path)


async def _is_current(connection: Connection) -> bool:
    if not await connection.rows(sql.HAS_REVISION):
        return False
    return [tuple(row) for row in await connection.rows(sql.READ_REVISION)] == [(REVISION,)]


async def _set_up(connection: Connection, durability: Durability, limits: Limits) -> None:
    """Set what durability rests on, and read it back: a setting that is not taken is not told otherwise."""
    [(pages,)] = await connection.rows("PRAGMA page_count")
    wanted = {
        "journal_mode": "wal",
        "synchronous": 2 if durability is Durability.POWER else 1,
        "foreign_keys": 1,
        "busy_timeout": limits.busy_ms,
        "journal_size_limit": 64 * _MEBIBYTE,
        "cache_size": -32 * 1024,
        "temp_store": 2,
    }
    if pages == 0:
        # Before the first page is written, or it needs a VACUUM of the whole file.
        wanted = {"auto_vacuum": 2, **wanted}
    if sys.platform == "darwin":
        wanted["fullfsync"] = 1
    if limits.max_bytes is not None:
        [(page_bytes,)] = await connection.rows("PRAGMA page_size")
        wanted["max_page_count"] = max(limits.max_bytes // page_bytes, pages, 1)
    for name, value in wanted.items():
        await connection.rows(f"PRAGMA {name} = {value}")
        found = (await connection.rows(f"PRAGMA {name}"))[0][0]
        if found != value:
            raise StorageUnsafe(
                f"SQLite has {name} = {found} where hq needs {value}; is the file on a network?"
            )
