"""Queues: create, list, show, change, delete."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hq.backends.port import QueueRow
from hq.domain.commands import Count
from hq.domain.names import queue_name
from hq.domain.settings import Settings, in_range
from hq.errors import InvalidInput
from hq.http import models as m
from hq.http import wire
from hq.http.calls import Call
from hq.http.handlers.many import body_shape
from hq.http.handlers.settings import said, shown
from hq.http.replies import Reply, ok
from hq.system.keywords import changed

MAX_PAGE = 1_000


async def create(call: Call) -> Reply:
    """By a JSON body if there is one, else by the query."""
    taken = _said(call, m.NewQueue)
    if not isinstance(taken.name, str):
        raise InvalidInput("a queue needs a name")
    call.line.guard.check()
    node = call.line.node
    existed = any(row.name == taken.name for row in await node.queues())
    row = await node.create(queue_name(taken.name), changed(Settings(), said(taken)))
    return ok(shown(row), 200 if existed else 201)


async def list_all(call: Call) -> Reply:
    """A page of queues by name."""
    query = call.query
    in_range("limit", query.limit, 1, MAX_PAGE)
    call.line.guard.check()
    rows = sorted(await call.line.node.queues(), key=lambda row: row.name)
    page = [row for row in rows if row.name > query.after][: query.limit]
    if not query.counts:
        return ok([shown(row) for row in page])
    asked = [(row, call.line.node.post(row.number, Count())) for row in page]
    return ok([shown(row, m.Stats(**asdict(await stats))) for row, stats in asked])


async def show(call: Call) -> Reply:
    """One queue."""
    return ok(shown(await _row(call)))


async def change(call: Call) -> Reply:
    """Change some settings, by a JSON body if there is one, else by the query."""
    taken = _said(call, m.ChangedSettings)
    async with call.line.configuring:
        row = await _row(call)
        settings = changed(row.settings, said(taken))
        await call.line.node.configure(call.queue, settings)
    return ok(shown(row._replace(settings=settings)))


async def delete(call: Call) -> Reply:
    """Delete a queue with all it holds."""
    call.line.number(call.queue)
    await call.line.node.drop(call.queue)
    return Reply(204, b"")


def _said(call: Call, kind: type[m.ChangedSettings]) -> Any:
    if not call.body:
        return call.query
    if call.query != type(call.query)():
        raise InvalidInput("settings are said in the query or in the body, not in both")
    body_shape(call)
    return wire.decode(call.body, kind, call.depth)


async def _row(call: Call) -> QueueRow:
    call.line.guard.check()
    return call.node.directory.row(call.queue)
