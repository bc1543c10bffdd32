"""hq config: what hq would serve with, and where each value came from."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from hq.cli.show import Show
from hq.cli.target import AsJson

app = typer.Typer(no_args_is_help=True, help="Look at the configuration.")

ConfigFile = Annotated[Path | None, typer.Option("--config", help="A TOML file; see configs/.")]
Database = Annotated[str | None, typer.Option("-d", "--database", help="As of `hq serve`.")]
COLUMNS = ("key", "value", "from")
_PASSWORD = re.compile(r"(://[^:/@]*:)[^@]*@")


@app.command()
def check(*, config: ConfigFile = None) -> None:
    """See whether `hq serve` would take the configuration."""
    from hq.config import load

    loaded = load(config, environment=os.environ)
    loaded.server.check_bind(keys=0)
    print("the configuration is good")


@app.command()
def show(*, config: ConfigFile = None, database: Database = None, as_json: AsJson = False) -> None:
    """Show every key with its value, and where it was given."""
    Show(as_json=as_json).rows(settings(config, database), COLUMNS)


def settings(config: Path | None, database: str | None) -> list[dict[str, Any]]:
    """Every key with its value, and where it was given; a password is not shown."""
    from hq.config import sources

    found = sources(config, environment=os.environ, flags={"--database": database})
    return [
        {
            "key": key.name,
            "value": _PASSWORD.sub(r"\1***@", value) if isinstance(value, str) else value,
            "from": place or "default",
        }
        for key, value, place in found
    ]
