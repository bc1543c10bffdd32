"""Events over HTTP: server-sent events, each with its cursor as id, so that a browser resumes by itself.

A stream holds no more than one page. It ends when the server stops; when its reader fell behind what the
journal keeps, the last event says so.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

import anyio
import msgspec

from hq.actors.watch import Event, Wanted, Watch
from hq.errors import Closed, HQError, InvalidInput
from hq.http import models as m
from hq.http.calls import Api, Call
from hq.http.problems import problem_of
from hq.http.replies import Reply, encode

HEARTBEAT_S = 10.0
EVENTS = "text/event-stream"


async def events(call: Call) -> Reply:
    """Of all queues, one, or those under a prefix."""
    return await _stream(call, call.query.queue, call.query.prefix)


async def queue_events(call: Call) -> Reply:
    """Of the queue in the path, that is there."""
    call.line.number(call.queue)
    return await _stream(call, call.queue, None)


async def _stream(call: Call, queue: str | None, prefix: str | None) -> Reply:
    call.line.guard.check()
    kinds = call.query.kinds
    wanted = Wanted(_after(call), queue, prefix, None if kinds is None else frozenset(kinds.split(",")))
    watch = call.node.watch(wanted)
    # Before the answer begins: whoever has it knows that nothing after it is missed.
    await watch.begin()
    return Reply(200, b"", EVENTS, stream=_lines(call.api, watch))


def _after(call: Call) -> str | None:
    """Where to go on: a browser that reconnects says it in a header, which is newer than its query."""
    header = call.headers.get(b"last-event-id")
    after: str | None = call.query.after
    if not header:
        return after
    try:
        return header.decode("ascii")
    except UnicodeDecodeError:
        raise InvalidInput("the Last-Event-ID is no place in the journal") from None


async def _lines(api: Api, watch: Watch) -> AsyncGenerator[bytes]:
    yield _alive(watch)
    while not api.draining:
        page: list[Event] | None = None
        try:
            with api.waiting(), anyio.move_on_after(HEARTBEAT_S):
                page = await watch.page()
        except Closed:
            return
        except HQError as error:
            yield b"event: error\ndata: " + msgspec.json.encode(problem_of(error)) + b"\n\n"
            return
        yield _alive(watch) if page is None else b"".join(map(_line, page))


def _alive(watch: Watch) -> bytes:
    """A comment, and how far it has been read: an id without data is remembered and not told."""
    return b"id: " + watch.reached.encode() + b"\n:\n\n"


def _line(event: Event) -> bytes:
    told = m.Event(
        cursor=event.cursor, kind=event.kind, queue=event.queue, at=event.at, message_id=event.message_id,
        details=event.details, hydra=list(event.hydra),
    )  # fmt: skip
    return b"".join(
        (
            b"id: ",
            event.cursor.encode(),
            b"\nevent: ",
            event.kind.encode(),
            b"\ndata: ",
            encode(told),
            b"\n\n",
        )
    )
