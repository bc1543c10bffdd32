"""What a command talks to: a running server, or a database that it opens itself.

Whichever it is, a command sees the objects of `hq.open`. What brings libraries is imported when a command
runs, so that `hq --help` waits for none of it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from hq.cli.show import Show
from hq.errors import DatabaseInUse, InvalidInput

if TYPE_CHECKING:
    from hq.system.queue import Queue
    from hq.system.system import System

SERVER = "http://127.0.0.1:9999"
PATIENCE_S = 3.0
"""A person waits for an answer: a server that is starting is worth a moment, one that is away is not."""

Url = Annotated[str | None, typer.Option("--url", help=f"The server to ask; default HQ_URL, then {SERVER}.")]
Database = Annotated[
    str | None, typer.Option("-d", "--database", help="Open this path or URL instead of asking a server.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


class Place(NamedTuple):
    """Where a system is, as it was said."""

    url: str | None
    database: str | None

    def where(self) -> str:
        """Its URL or path."""
        if self.database is not None and self.url is not None:
            raise InvalidInput("a command asks a server (--url) or opens a --database, not both")
        return self.database or self.url or os.environ.get("HQ_URL") or SERVER


class Target:
    """The system that a command works on, and how it tells what came of it."""

    def __init__(self, system: System, show: Show) -> None:
        self.system = system
        self.show = show

    def queue(self, name: str) -> Queue:
        """A queue of it."""
        return self.system.queue(name)


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator[System]:
    """The system there, for as long as a command works on it.

    A file is held for that time and not shared: serving it to others would take longer than most commands
    do. One that another process shares is asked for there.
    """
    from hq.system.open import open as open_system

    key = os.environ.get("HQ_API_KEY") or None
    where = place.where()
    async with AsyncExitStack() as stack:
        try:
            opening = open_system(where, access="exclusive", api_key=key, patience_s=PATIENCE_S)
            system = await stack.enter_async_context(opening)
        except DatabaseInUse:
            system = await stack.enter_async_context(open_system(where))
        yield system
