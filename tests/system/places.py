"""The places a system can be: in this process, behind HTTP, or with the process that holds its file."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from anyio.from_thread import start_blocking_portal

import hq
from hq.http.calls import Api, Terms
from hq.testing import FrozenClock, SeededChance
from tests.http.ways import served

EMBEDDED = ("memory", "sqlite")
PLACES = (*EMBEDDED, "http", "socket")


@asynccontextmanager
async def system_at(place: str, folder: Path, clock: FrozenClock) -> AsyncIterator[hq.System]:
    """A system there; whatever serves it runs in the same loop, by the same clock."""
    file, embedded = folder / "hq.db", {"clock": clock, "chance": SeededChance()}
    if place == "memory":
        async with hq.open("memory:", **embedded) as system:
            yield system
    elif place == "sqlite":
        async with hq.open(file, **embedded) as system:
            yield system
    elif place == "http":
        async with (
            hq.open("memory:", **embedded) as behind,
            served("hypercorn", Api(behind.line, Terms())) as address,
            hq.open(address, clock=clock) as system,
        ):
            yield system
    else:
        async with hq.open(file, **embedded), hq.open(file, clock=clock) as system:
            yield system


@contextmanager
def url_at(place: str, folder: Path) -> Iterator[str]:
    """A URL that opens there; whatever serves it runs in a thread of its own, by the time of day."""
    file = f"sqlite:///{folder}/hq.db"
    if place == "memory":
        yield "memory:"
    elif place == "sqlite":
        yield file
    elif place == "http":
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(_server()) as address:
            yield address
    else:
        with hq.blocking.open(file):
            yield file


@asynccontextmanager
async def _server() -> AsyncIterator[str]:
    async with (
        hq.open("memory:") as system,
        served("hypercorn", Api(system.line, Terms())) as address,
    ):
        yield address
