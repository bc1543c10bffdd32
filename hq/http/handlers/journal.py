"""The journal over HTTP: every event of every queue in order, resumable by position."""

from __future__ import annotations

import logging

from hq.backends.port import JournalRow
from hq.domain.settings import in_range
from hq.errors import InvalidInput
from hq.http import columns, wire
from hq.http import extents as x
from hq.http.calls import Call
from hq.http.handlers.many import body_shape
from hq.http.replies import NDJSON, Reply, encode, ok
from hq.tables.told import told

log = logging.getLogger("hq.http")

MAX_ENTRIES = 10_000
MAX_POSITION = 1 << 62
MAX_EVENTS = 1_000_000_000


async def journal(call: Call) -> Reply:
    """Entries after a position; the header HQ-Reached says up to which position they were read."""
    query = call.query
    in_range("limit", query.limit, 1, MAX_ENTRIES)
    in_range("after", query.after, 0, MAX_POSITION)
    in_range("upto", query.upto, 0, MAX_POSITION)
    call.line.guard.check()
    number = None if query.queue is None else call.line.number(query.queue)
    if columns.wants_arrow(call):
        async with call.api.columns:
            return await _as_arrow(call, number)
    if query.columns is not None:
        raise InvalidInput(f"columns can be chosen with Accept: {columns.ARROW}")
    lines: list[bytes] = []
    reached = query.after
    for entry in await call.node.journal(query.after, query.limit):
        if entry.position > query.upto:
            break
        reached = entry.position
        if number is None or entry.queue == number:
            head = {"position": entry.position, "queue": entry.queue}
            lines += [encode({**head, **told(event)}) + b"\n" for event in entry.events]
    return _reply(b"".join(lines), NDJSON, reached)


async def bounds(call: Call) -> Reply:
    """Which positions there are and of which incarnation of the store; how far so many events reach."""
    query = call.query
    in_range("after", query.after, 0, MAX_POSITION)
    call.line.guard.check()
    node = call.node
    first, last, archived = await node.journal_bounds()
    shown = x.JournalBounds(
        first=first, last=last, incarnation=node.incarnation, pruned=max(0, first - 1), archived=archived
    )
    if query.events is not None:
        in_range("events", query.events, 1, MAX_EVENTS)
        shown.reach = min(last, await node.journal_reach(query.after, query.events))
    if query.upto is not None:
        in_range("upto", query.upto, query.after, MAX_POSITION)
        shown.count = await node.journal_count(query.after, query.upto)
    return ok(shown)


async def archived(call: Call) -> Reply:
    """Note that a lake has the journal up to a position, so that it need be kept no longer for that."""
    body_shape(call)
    said = wire.decode(call.body, x.NewArchived, call.depth)
    in_range("to", said.to, 0, MAX_POSITION)
    if said.incarnation != call.node.incarnation:
        raise InvalidInput("this is the archive of another store, or of this one before it was restored")
    reached = await call.node.archived(said.to)
    log.info("archived", extra={"to": reached, "manifest": said.manifest})
    return ok(x.Archived(archived=reached))


async def _as_arrow(call: Call, number: int | None) -> Reply:
    after, upto = call.query.after, call.query.upto
    node = call.node
    rows: list[JournalRow] = []
    if after < upto:
        if after == 0 and upto == MAX_POSITION:
            # From wherever it begins; a range with an end is given whole or not at all.
            after = max(0, (await node.journal_bounds()).first - 1)
        rows = await node.journal_rows(after, upto, call.query.limit)
    reached = rows[-1].position if rows else after
    wanted = [row for row in rows if number is None or row.queue == number]
    return _reply(await columns.of_events(call, wanted), columns.ARROW, reached)


def _reply(body: bytes, content_type: str, reached: int) -> Reply:
    return Reply(200, body, content_type, ((b"hq-reached", str(reached).encode()),))
