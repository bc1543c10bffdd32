"""Operating a queue: purge, pause, resume."""

from __future__ import annotations

from hq.domain import commands as c
from hq.domain.tasks import Scope
from hq.http import models as m
from hq.http.calls import Call
from hq.http.replies import Reply, ok


async def purge(call: Call) -> Reply:
    """Take out all that wait or are leased."""
    return await _purge(call, Scope.LIVE)


async def purge_dead_letters(call: Call) -> Reply:
    """Take out all dead letters."""
    return await _purge(call, Scope.FAILED)


async def pause(call: Call) -> Reply:
    """Hand nothing out, of the queue or of one group."""
    query = call.query
    command = c.Pause(query.reason) if query.group is None else c.PauseGroup(query.group, query.reason)
    await call.post(command)
    return ok(m.Paused(paused=True))


async def resume(call: Call) -> Reply:
    """Hand out again."""
    group = call.query.group
    await call.post(c.Resume() if group is None else c.ResumeGroup(group))
    return ok(m.Paused(paused=False))


async def compact(call: Call) -> Reply:
    """Give free space back; the store is one for all queues, so this is more than the queue asked for."""
    call.line.guard.check()
    await call.node.compact(call.queue)
    return ok(m.Compacted(status="ok"))


async def _purge(call: Call, scope: Scope) -> Reply:
    done = await call.post(c.Purge(scope))
    return ok(m.Purged(purged=done.count))
