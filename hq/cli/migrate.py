"""hq migrate."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from hq.cli.serve import ConfigFile, Database
from hq.errors import ConfigInvalid

if TYPE_CHECKING:
    from hq.config import Config

Sql = Annotated[bool, typer.Option("--sql", help="Print the statements instead of running them.")]
Since = Annotated[str, typer.Option("--since", help="Print what is missing since this revision.")]


def migrate(
    *,
    database: Database = None,
    config: ConfigFile = None,
    sql: Sql = False,
    since: Since = "base",
) -> None:
    """Bring the schema of a Postgres database up to date; `hq serve` does it by itself, if it may."""
    import asyncio

    from hq.config import load

    loaded = load(config, environment=os.environ, flags={"--database": database})
    if not loaded.database.startswith(("postgresql://", "postgres://")):
        raise ConfigInvalid(
            "only a Postgres database is migrated by itself; a SQLite file is, as it is opened"
        )
    if sql:
        schema = import_module("hq.backends.postgres.schema").Schema(loaded.postgres.schema)
        typer.echo(import_module("hq.backends.postgres.migrate").printed(schema, since), nl=False)
    else:
        asyncio.run(_migrate(loaded))
        typer.echo("the schema is up to date")


async def _migrate(config: Config) -> None:
    postgres = import_module("hq.backends.postgres")
    await postgres.backend_of(config.database, schema=config.postgres.schema).migrate()
