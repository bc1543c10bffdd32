"""Receive: one message or several, from one queue or all under a prefix, waiting if the caller wants to."""

from __future__ import annotations

from typing import Any

from hq.domain.commands import Receive
from hq.domain.names import queue_name
from hq.domain.replies import Delivery
from hq.domain.settings import in_range
from hq.errors import InvalidInput
from hq.http.calls import Call
from hq.http.handlers.shown import received
from hq.http.replies import NULL, Reply, encode

MAX_WAIT_MS = 300_000


async def receive(call: Call) -> Reply:
    """One message, or null."""
    query = call.query
    number = call.line.number(call.queue)
    deliveries = await _receive(call, Receive(1, query.lease_ms, query.holder))
    if not deliveries:
        return NULL
    return _told(call, received(call, call.queue, number, deliveries[0]))


async def poll(call: Call) -> Reply:
    """Up to `batch` messages."""
    number = call.line.number(call.queue)
    deliveries = await _receive(call, _command(call.query))
    queue = call.queue
    return _told(call, {"messages": [received(call, queue, number, one) for one in deliveries]})


async def receive_under(call: Call) -> Reply:
    """Up to `batch` messages of one queue under the prefix: the one that was served least recently."""
    command = _command(call.query)
    call.line.guard.check()
    if call.query.prefix:
        queue_name(call.query.prefix)
    name, deliveries = await call.node.receive_under(call.query.prefix, command, wait_of(call))
    number = call.line.number(name) if deliveries else 0
    return _told(call, {"messages": [received(call, name, number, one) for one in deliveries]})


def _told(call: Call, value: object) -> Reply:
    """With the time by the clock that leases end by, for a client whose own clock may differ."""
    return Reply(200, encode(value), headers=((b"hq-now", str(call.node.clock.now).encode()),))


def _command(query: Any) -> Receive:
    if query.visibility_ms is not None and query.lease_ms is not None:
        raise InvalidInput("lease_ms is given twice: visibility_ms means the same")
    lease_ms = query.visibility_ms if query.lease_ms is None else query.lease_ms
    return Receive(query.batch, lease_ms, query.holder)


async def _receive(call: Call, command: Receive) -> list[Delivery]:
    return await call.node.receive(call.queue, command, wait_of(call))


def wait_of(call: Call) -> int:
    """How long to wait: as long as the caller wants to, not at all once the server stops."""
    wait_ms: int = call.query.wait_ms
    in_range("wait_ms", wait_ms, 0, MAX_WAIT_MS)
    return 0 if call.api.draining else wait_ms
