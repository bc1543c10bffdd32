"""Bringing a schema of a Postgres database to what this hq is written for, forward only.

Alembic writes the migrations as text, and that text is what is run and what `hq migrate --sql` prints. Of
several processes that start at once one migrates and the others wait for it.
"""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from hq.backends.postgres import statements as sql
from hq.backends.postgres.schema import Schema
from hq.errors import SchemaTooNew

if TYPE_CHECKING:
    from hq.backends.postgres.connections import Connection

_BASE = "base"


def script(schema: Schema, since: str = _BASE) -> str:
    """All statements from a revision on; from nothing, if none is named."""
    output = StringIO()
    config = Config(output_buffer=output)
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.set_main_option("path_separator", "os")
    config.attributes.update(schema=schema.name, place=schema.place, output=output)
    known = {one.revision for one in ScriptDirectory.from_config(config).walk_revisions()}
    if since not in {_BASE, *known}:
        raise SchemaTooNew(
            f"this database has schema {since}, newer than this hq; run the hq that wrote it, or restore"
            " an older backup"
        )
    command.upgrade(config, f"{since}:head", sql=True)
    return output.getvalue()


def printed(schema: Schema, since: str = _BASE) -> str:
    """A script for whoever runs it by hand, all or nothing."""
    made = f"CREATE SCHEMA IF NOT EXISTS {schema.quoted};\n\n" if since == _BASE else ""
    return f"BEGIN;\n\n{made}{script(schema, since)}COMMIT;\n"


async def migrate(connection: Connection) -> None:
    """Run the migrations that are missing, all of them or none."""
    schema = connection.schema
    async with connection.transaction():
        await connection.rows(sql.LOCK_DOOR, schema.locks)
        [(has_schema, has_revisions)] = await connection.rows(
            sql.SCHEMA_AND_REVISIONS, {"schema": schema.name}
        )
        if not has_schema:
            # Only then: whoever may not make schemas can be given one.
            await connection.script(f"CREATE SCHEMA {schema.quoted}")
        revisions = await connection.rows(sql.READ_REVISION, {}) if has_revisions else []
        since = revisions[0][0] if revisions else _BASE
        missing = await anyio.to_thread.run_sync(script, schema, since)
        if missing.strip():
            await connection.script(missing)
