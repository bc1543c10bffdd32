"""hq backup and hq restore: all there is, as of one moment, in one file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hq.cli.show import Show
from hq.cli.target import AsJson, Database, Place, Url, opened
from hq.errors import InvalidInput

if TYPE_CHECKING:
    from hq.config import Config

To = Annotated[Path, typer.Argument(help="The file to make; it is a SQLite file, whatever it is of.")]
Backup = Annotated[Path, typer.Argument(help="What `hq backup` made.")]
Into = Annotated[str, typer.Option("-d", "--database", help="A new file, or a Postgres URL without a store.")]


def add_to(app: typer.Typer) -> None:
    """Make them commands."""
    app.command()(backup)
    app.command()(restore)


def backup(to: To, *, url: Url = None, database: Database = None, as_json: AsJson = False) -> None:
    """Back up a server or a database, while it is in use, to a new file."""
    import asyncio

    place = Place(url, database)
    place.where()
    asyncio.run(_backup(place, to))
    Show(as_json=as_json).done(f"backed up to {to}", {"file": str(to), "bytes": to.stat().st_size})


def restore(backup: Backup, *, database: Into, as_json: AsJson = False) -> None:
    """Make a database of a backup, where there is none yet.

    It has ids of its own; those given before the backup stay good for what was restored.
    """
    import asyncio

    from hq.system.backups import restore as restored

    asyncio.run(restored(backup, database, **_postgres(_config().postgres)))
    Show(as_json=as_json).done("restored", {"file": str(backup), "restored": True})


async def _backup(place: Place, to: Path) -> None:
    from hq.backends.sqlite.backups import check, making

    if place.database is not None:
        from hq.system.backups import backup as backed_up

        await backed_up(place.database, to, **_postgres(_config().postgres))
    else:
        from hq.client.remote import RemoteNode

        async with opened(place) as system:
            node = system.line.node
            if not isinstance(node, RemoteNode):
                raise InvalidInput("HQ_URL leads to no server; name a database by --database")
            with making(to) as part, part.open("wb") as file:
                await node.backup(file)
    check(to)


def _config() -> Config:
    from hq.config import load

    return load(environment=os.environ)


def _postgres(settings: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(settings)
