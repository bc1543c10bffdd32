"""Whether the process runs, and whether it can store."""

from __future__ import annotations

from hq.http import models as m
from hq.http import reports
from hq.http.calls import Call
from hq.http.problems import Stopping
from hq.http.replies import Reply, ok


async def healthz(call: Call) -> Reply:
    """The process runs."""
    return ok(m.Health(status="ok", now=call.node.clock.now))


async def examine(call: Call) -> Reply:
    """Read all that is stored."""
    found = await call.node.examine(call.query.most)
    return ok(reports.Examined(facts=found.facts, damage=found.damage))


async def readyz(call: Call) -> Reply:
    """Storage answers, and the server is not stopping."""
    if call.api.draining:
        raise Stopping
    node = call.node
    await node.check()
    return ok(m.Readiness(status="ok", durability=node.durability, queues=len(await node.queues())))
