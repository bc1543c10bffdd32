"""Backups of whole stores: made beside whoever writes, restored where there is nothing yet."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from hq.backends.sqlite.backups import copy_file, restore_file
from hq.errors import DatabaseMissing, InvalidInput
from hq.system.open import is_postgres, path_of, postgres_backend


async def backup(database: str, to: Path, **postgres: Any) -> None:
    """Write all a database has, as of one moment, to a new file; whoever serves it goes on."""
    if is_postgres(database):
        backend = await anyio.to_thread.run_sync(partial(postgres_backend, database, postgres))
        try:
            await backend.copy(to)
        finally:
            with anyio.CancelScope(shield=True):
                await backend.close()
        return
    path = _file(database)
    if not await anyio.Path(path).is_file():
        raise DatabaseMissing(f"there is no database {path}")
    await anyio.to_thread.run_sync(copy_file, path, to)


async def restore(backup: Path, database: str, **postgres: Any) -> None:
    """Make a database of a backup: a new file, or an empty schema of Postgres."""
    if is_postgres(database):
        backend = await anyio.to_thread.run_sync(partial(postgres_backend, database, postgres))
        await backend.restore(backup)
        return
    await anyio.to_thread.run_sync(restore_file, backup, _file(database))


def _file(database: str) -> Path:
    if database == "memory:":
        raise InvalidInput("what is in memory is neither backed up nor restored; name a database")
    return Path(path_of(database))
