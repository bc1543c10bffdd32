"""Looking at queues and messages, which changes nothing."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from msgspec import UNSET, Raw

from hq.domain import commands as c
from hq.domain.tasks import Scope
from hq.http import models as m
from hq.http.calls import Call
from hq.http.handlers.receive import wait_of
from hq.http.handlers.shown import shown
from hq.http.replies import Reply, ok


async def stats(call: Call) -> Reply:
    """The queue in numbers."""
    return ok(m.Stats(**asdict(await call.post(c.Count()))))


async def peek(call: Call) -> Reply:
    """The next messages."""
    return await _looked(call, c.Peek(call.query.limit))


async def browse(call: Call) -> Reply:
    """A page of those that wait or are leased."""
    return await _page(call, Scope.LIVE)


async def dead_letters(call: Call) -> Reply:
    """A page of dead letters."""
    return await _page(call, Scope.FAILED)


async def get(call: Call) -> Reply:
    """One message."""
    number, sequence = _found(call, call.path["id"])
    seen = await call.line.node.post(number, c.Get(sequence))
    return ok(shown(call, call.queue, number, seen.message, str(seen.state)))


async def explain(call: Call) -> Reply:
    """Why it waits."""
    number, sequence = _found(call, call.path["id"])
    told = await call.line.node.post(number, c.Explain(sequence))
    blockers = [
        m.Blocker(
            code=one.code,
            until=one.until,
            message_id=None if one.message is None else call.node.id_text(number, one.message),
            reason=one.reason,
        )
        for one in told.blockers
    ]
    return ok(m.Explanation(state=str(told.state), blockers=blockers))


async def outcome(call: Call) -> Reply:
    """What came of it, waiting until it is over."""
    number, sequence = _found(call, call.path["id"])
    wait_ms = wait_of(call)
    told = await call.line.node.outcome(number, sequence, 0)
    if wait_ms and not told.is_over:
        # If the server stops meanwhile, what is known now is the answer.
        with call.api.waiting():
            told = await call.line.node.outcome(number, sequence, wait_ms)
    return ok(
        m.Outcome(
            id=call.path["id"],
            state=told.state,
            attempts=told.attempts,
            progress=UNSET if told.progress is None else Raw(told.progress),
            result=UNSET if told.result is None else Raw(told.result),
            error=told.error,
        )
    )


async def _page(call: Call, scope: Scope) -> Reply:
    after = call.query.after
    sequence = 0 if after is None else _found(call, after)[1]
    return await _looked(call, c.Browse(scope, sequence, call.query.limit))


async def _looked(call: Call, command: c.Peek | c.Browse) -> Reply:
    number = call.line.number(call.queue)
    seen: list[Any] = await call.line.node.post(number, command)
    messages = [shown(call, call.queue, number, one.message, str(one.state)) for one in seen]
    may_go_on = isinstance(command, c.Browse) and len(messages) == command.limit
    return ok(m.Page(messages=messages, next=messages[-1].id if may_go_on else UNSET))


def _found(call: Call, text: str) -> tuple[int, int]:
    number = call.line.number(call.queue)
    return number, call.node.sequence_in(number, text)
