"""Replies as Arrow, for readers of many rows: made in a thread, one at a time.

pyarrow is wanted when the first such reply is, so a server runs without it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import anyio
import anyio.to_thread

from hq.backends.port import JournalRow
from hq.domain.replies import Seen
from hq.errors import InvalidInput
from hq.http.calls import Call
from hq.http.problems import ArrowMissing

ARROW = "application/vnd.apache.arrow.stream"


def wants_arrow(call: Call) -> bool:
    """Whether Arrow is among what the caller accepts; who says nothing gets lines."""
    accepted = call.headers.get(b"accept", b"").decode("latin-1").lower().split(",")
    return any(ARROW in said and "q=0" not in said.replace("q=0.", "") for said in accepted)


async def of_events(call: Call, rows: Sequence[JournalRow]) -> bytes:
    """The events of journal rows."""
    node = call.node
    names = {row.number: row.name for row in await node.queues()}
    return await _made(call, "events", rows, names, node.incarnation)


async def of_messages(call: Call, seen: Sequence[Seen], number: int) -> bytes:
    """Messages of the queue of the path."""
    return await _made(call, "messages", seen, call.queue, number, call.node.incarnation)


async def _made(call: Call, table: str, *arguments: Any) -> bytes:
    made: bytes = await anyio.to_thread.run_sync(partial(_stream, table, call.query.columns, *arguments))
    return made


def _stream(table: str, columns: str | None, *arguments: Any) -> bytes:
    try:
        tables = import_module(f"hq.tables.{table}")
        stream_of = import_module("hq.tables.stream").stream_of
    except ImportError as error:
        if (error.name or "").startswith("hq."):
            raise
        raise ArrowMissing from error
    known: list[str] = tables.SCHEMA.names
    wanted = known if columns is None else columns.split(",")
    for name in wanted:
        if name not in known:
            raise InvalidInput(f"there is no column {name!r}; there are {', '.join(known)}")
    if len(set(wanted)) != len(wanted):
        raise InvalidInput("a column is named twice")
    with _uncollected():
        streamed: bytes = stream_of(getattr(tables, f"{table}_batch")(*arguments, wanted))
    return streamed


@contextmanager
def _uncollected() -> Iterator[None]:
    """Spare the garbage collector a walk over records that go as soon as they are columns.

    It finds nothing in them, and takes a third of the time. A page is bounded, so it is off for some tens of
    milliseconds; whoever finds it off leaves it off.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
