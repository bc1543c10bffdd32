"""Opening a Postgres database: its schema brought up to date, and what durability rests on read back."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

import anyio.to_thread

from hq.backends.postgres import statements as sql
from hq.backends.postgres.connections import Connection
from hq.backends.postgres.ownership import check_clock
from hq.backends.postgres.schema import REVISION
from hq.errors import DatabaseReadOnly, StorageUnsafe


class Shape(NamedTuple):
    """How hq uses a database: its schema, how many connections for what, and what an append survives."""

    schema: str = "hq"
    lines: int = 4
    connections: int = 8
    durability: str = "power"
    prepared: bool = True


async def prepare(connection: Connection, shape: Shape) -> None:
    """Make the schema ready; a server that cannot keep what it is told is refused."""
    await _check(connection, shape)
    await check_clock(connection)
    if not await _is_current(connection):
        # Alembic takes a quarter of a second to import, and mostly there is nothing to do.
        module = await anyio.to_thread.run_sync(import_module, "hq.backends.postgres.migrate")
        await module.migrate(connection)


async def _is_current(connection: Connection) -> bool:
    place = {"schema": connection.schema.name}
    [(_, has_revisions)] = await connection.rows(sql.SCHEMA_AND_REVISIONS, place)
    if not has_revisions:
        return False
    return [tuple(row) for row in await connection.rows(sql.READ_REVISION)] == [(REVISION,)]


async def _check(connection: Connection, shape: Shape) -> None:
    [found] = await connection.rows(sql.GREETING)
    if found["in_recovery"]:
        raise DatabaseReadOnly("this Postgres is a standby; name the primary")
    if shape.durability != "power":
        return
    for name, unsafe in (("synchronous_commit", "off"), ("fsync", "off"), ("full_page_writes", "off")):
        if found[name] == unsafe:
            raise StorageUnsafe(
                f"Postgres has {name} = {unsafe}, so that an answer would not survive a loss of power;"
                " set it on, or choose durability = 'process'"
            )
