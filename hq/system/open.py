"""hq.open: from a URL to a running system."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from importlib import import_module
from os import PathLike, fspath
from typing import Any

import anyio.to_thread

from hq.actors.clock import Clock
from hq.actors.limits import Limits
from hq.actors.node import Node
from hq.backends.memory import MemoryBackend
from hq.backends.port import Backend
from hq.domain.chance import Chance
from hq.errors import InvalidInput, UnsupportedUrl
from hq.system.port import Port
from hq.system.system import Opening, OpenPort, System, embedded

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_POSTGRES = {"postgresql", "postgres"}


def open(
    url: str | PathLike[str],
    *,
    durability: str = "power",
    access: str = "shared",
    postgres: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    api_key: str | None = None,
    patience_s: float = 15.0,
    clock: Clock | None = None,
    chance: Chance | None = None,
) -> AbstractAsyncContextManager[System]:
    """Open a system: `memory:`, a path, `sqlite:///path`, `postgresql://user@host/database`, or a server.

    An absolute path has four slashes before it. A server is named by its address, `http://host:9999`; it is
    shown the `api_key`, and asked for `patience_s` before it is told to be unreachable. What else there is,
    is for systems in this process. `durability` is what an answer survives on disk: the loss of
    `power`, or of the `process` alone. `access` says what becomes of other processes that open the same file:
    if it is `shared` they join, if it is `exclusive` they are told DatabaseInUse. `postgres` has what
    [postgres] has in a config file: schema, lines, connections, ownership_s, .... `limits` bounds what it
    takes on, above all the memory of all its queues. `clock` and `chance` are for tests.
    """
    if durability not in {"power", "process"}:
        raise InvalidInput(f"durability must be 'power' or 'process', not {durability!r}")
    if access not in {"shared", "exclusive"}:
        raise InvalidInput(f"access must be 'shared' or 'exclusive', not {access!r}")
    text = fspath(url)
    new_node = partial(Node, limits=limits, clock=clock, chance=chance)
    if text == "memory:":
        return Opening(embedded(_open_memory, new_node))
    scheme = _SCHEME.match(text)
    if scheme is not None and scheme[1] in {"http", "https"}:
        return Opening(partial(_remote, text, clock, api_key, patience_s))
    if is_postgres(text):
        return Opening(embedded(partial(_open_postgres, text, durability, postgres or {}), new_node))
    path = path_of(text)
    hold = embedded(partial(_open_sqlite, path, durability), new_node)
    return Opening(hold if access == "exclusive" else partial(_shared, path, hold, clock))


def is_postgres(url: str) -> bool:
    """Whether a URL leads to a Postgres database."""
    scheme = _SCHEME.match(url)
    return scheme is not None and scheme[1] in _POSTGRES


def path_of(url: str) -> str:
    """The path of a SQLite file, as it is or in a URL."""
    scheme = _SCHEME.match(url)
    if scheme is None:
        path = url
    elif scheme[1] == "sqlite" and url.startswith("sqlite:///"):
        path = url.removeprefix("sqlite:///")
    else:
        raise UnsupportedUrl(f"{scheme[0]} is none of hq's; {UnsupportedUrl.__doc__}")
    if path in {"", ":memory:"} or "?" in path:
        raise UnsupportedUrl(f"{path!r} is no path to a file; {UnsupportedUrl.__doc__}")
    return path


# What follows is imported only when it is wanted, and in a thread: each brings libraries that take longer to
# import than all the rest of hq, and that not everybody has installed.


@asynccontextmanager
async def _remote(
    url: str, clock: Clock | None, api_key: str | None, patience_s: float
) -> AsyncIterator[Port]:
    try:
        client = await anyio.to_thread.run_sync(import_module, "hq.client.remote")
    except ModuleNotFoundError as error:
        raise UnsupportedUrl(
            f"a server is reached with {error.name}, which is not installed: pip install 'hq-queue[client]'"
        ) from error
    async with client.remote(url, clock, client.Patience(server_s=patience_s), api_key) as node:
        yield node


@asynccontextmanager
async def _shared(path: str, hold: OpenPort, clock: Clock | None) -> AsyncIterator[Port]:
    client = await anyio.to_thread.run_sync(import_module, "hq.client.shared")
    async with client.shared(path, hold, clock) as node:
        yield node


async def _open_memory() -> Backend:
    return MemoryBackend()


async def _open_sqlite(path: str, durability: str) -> Backend:
    backend = await anyio.to_thread.run_sync(_sqlite, path, durability)
    await backend.open()
    opened: Backend = backend
    return opened


async def _open_postgres(url: str, durability: str, options: Mapping[str, Any]) -> Backend:
    backend = await anyio.to_thread.run_sync(postgres_backend, url, {"durability": durability, **options})
    await backend.open()
    opened: Backend = backend
    return opened


def postgres_backend(url: str, options: Mapping[str, Any]) -> Any:
    """A backend of Postgres, that is not open yet."""
    try:
        postgres = import_module("hq.backends.postgres")
    except ModuleNotFoundError as error:
        raise UnsupportedUrl(f"{error.name} is not installed: pip install 'hq-queue[postgres]'") from error
    return postgres.backend_of(url, **options)


def _sqlite(path: str, durability: str) -> Any:
    sqlite = import_module("hq.backends.sqlite")
    return sqlite.SqliteBackend(path, durability=sqlite.Durability(durability))
