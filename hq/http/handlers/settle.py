"""Complete, retry, fail, release, extend, delete: by id, or by id and token, one or many."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from msgspec import Raw, UnsetType

from hq.domain import commands as c
from hq.domain.commands import Command
from hq.domain.ids import MessageId
from hq.errors import InvalidInput, MessageNotFound, QueueNotFound
from hq.http import models as m
from hq.http import wire
from hq.http.calls import Call
from hq.http.handlers.many import ask_all, body_shape, results
from hq.http.replies import Reply, ok

Build = Callable[[int, bytes | None, Any], Command]


async def complete_by_id(call: Call) -> Reply:
    """Complete whatever lease the message has."""
    return await _by_id(call, c.Complete)


async def fail_by_id(call: Call) -> Reply:
    """Make it a dead letter, whatever lease it has."""
    return await _by_id(call, c.Fail)


async def complete(call: Call) -> Reply:
    """The work is done."""
    return await _held(
        call,
        m.HeldComplete,
        lambda sequence, token, held: c.Complete(sequence, token, _json(held.result)),
    )


async def report(call: Call) -> Reply:
    """Say how far it is."""
    return await _held(
        call,
        m.HeldProgress,
        lambda sequence, token, held: c.Progress(sequence, token, bytes(held.progress)),
    )


async def retry(call: Call) -> Reply:
    """Try later."""
    return await _held(
        call,
        m.HeldRetry,
        lambda sequence, token, held: c.Retry(sequence, token, delay_ms=held.delay_ms, error=held.error),
    )


async def fail(call: Call) -> Reply:
    """Never again."""
    return await _held(
        call, m.HeldFail, lambda sequence, token, held: c.Fail(sequence, token, error=held.error)
    )


async def release(call: Call) -> Reply:
    """Give it back without blame."""
    return await _held(call, m.Held, lambda sequence, token, _: c.Release(sequence, token))


async def extend(call: Call) -> Reply:
    """A new end of the lease."""
    return await _held(
        call, m.HeldExtend, lambda sequence, token, held: c.Extend(sequence, token, held.lease_ms)
    )


async def delete(call: Call) -> Reply:
    """Take a message out, in whatever state it is."""
    number = call.line.number(call.queue)
    sequence = call.node.sequence_in(number, call.path["id"])
    return ok(_settled(call, number, await call.line.node.post(number, c.Delete(sequence))))


async def delete_many(call: Call) -> Reply:
    """The same, for one or many in a body."""
    return await _named(call, m.Named, lambda sequence, _: c.Delete(sequence))


async def requeue(call: Call) -> Reply:
    """Bring dead letters back."""
    return await _named(call, m.Named, lambda sequence, _: c.Requeue(sequence))


async def delete_by_key(call: Call) -> Reply:
    """Delete the message that holds a dedup key."""
    return await _keyed(call, c.DeleteByKey(call.query.dedup_key, call.query.group))


async def replace(call: Call) -> Reply:
    """The body is the new payload of the waiting message that holds a dedup key."""
    return await _keyed(call, c.Replace(call.query.dedup_key, call.body, call.query.group))


async def _keyed(call: Call, command: Command) -> Reply:
    number = call.line.number(call.queue)
    return ok(_settled(call, number, await call.line.node.post(number, command)))


async def _by_id(call: Call, build: Callable[[int, None], Command]) -> Reply:
    message_id = MessageId.parse(call.path["id"])
    call.line.guard.check()
    number = message_id.queue
    sequence = call.line.sequence_of(number, message_id)
    try:
        reply = await call.line.node.post(number, build(sequence, None))
    except QueueNotFound:
        raise MessageNotFound from None
    return ok(_settled(call, number, reply))


def _held(call: Call, kind: type[m.Held], build: Build) -> Awaitable[Reply]:
    return _named(call, kind, lambda sequence, held: build(sequence, _token(held), held))


async def _named(call: Call, kind: type[m.Named], build: Callable[[int, Any], Command]) -> Reply:
    number = call.line.number(call.queue)

    sequence_in = call.node.sequence_in

    def command(held: Any) -> Command:
        return build(sequence_in(number, held.id), held)

    if body_shape(call) == "one":
        held = wire.decode(call.body, kind, call.depth)
        return ok(_settled(call, number, await call.line.node.post(number, command(held))))
    told = await ask_all(call, number, kind, command)
    return ok(results(told, partial(_settled, call, number)))


def _json(value: Raw | UnsetType) -> bytes | None:
    return bytes(value) if isinstance(value, Raw) else None


def _token(held: m.Held) -> bytes | None:
    if not isinstance(held.token, str):
        if held.by_id:
            return None
        raise InvalidInput("a message in hand is named by its id and token, or else by_id is said")
    if held.by_id:
        raise InvalidInput("a token is given, and by_id is said")
    try:
        return bytes.fromhex(held.token)
    except ValueError:
        raise InvalidInput("a token is the hexadecimal text that came with the message") from None


def _settled(call: Call, number: int, reply: Any) -> m.Settled:
    message_id = call.node.id_text(number, reply.message)
    return m.Settled(id=message_id, state=reply.state, until=reply.until)
