"""Schedules of a queue: set, list, show, remove; each with its next five ticks."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from hq.domain.commands import RemoveSchedule
from hq.domain.messages import Options
from hq.errors import ScheduleNotFound
from hq.http import models as m
from hq.http import wire
from hq.http.calls import Call
from hq.http.handlers.many import body_shape
from hq.http.handlers.send import payload_of
from hq.http.handlers.settings import plain, retry_policy
from hq.http.handlers.shown import said
from hq.http.replies import Reply, ok
from hq.system import schedules
from hq.system.schedules import Schedule, ScheduleKeywords


async def put(call: Call) -> Reply:
    """Add a schedule or change the one of this name."""
    body_shape(call)
    new = wire.decode(call.body, m.NewSchedule, call.depth)
    payload, content_type = payload_of(new, call.depth)
    how: ScheduleKeywords = {"content_type": content_type}
    given = msgspec.structs.asdict(new)
    for name in ScheduleKeywords.__annotations__:
        value = given.get(name)
        if value is not None and value is not UNSET:
            how[name] = retry_policy(value) if isinstance(value, m.Retry) else value  # type: ignore[literal-required]
    planned = await schedules.set_schedule(call.line, call.queue, call.path["name"], payload, how)
    return ok(_shown(planned))


async def list_all(call: Call) -> Reply:
    """All of them, by name."""
    return ok([_shown(one) for one in await schedules.schedules(call.line, call.queue)])


async def show(call: Call) -> Reply:
    """One of them."""
    for one in await schedules.schedules(call.line, call.queue):
        if one.name == call.path["name"]:
            return ok(_shown(one))
    raise ScheduleNotFound


async def remove(call: Call) -> Reply:
    """Stop repeating."""
    await call.post(RemoveSchedule(call.path["name"]))
    return Reply(204, b"")


def _shown(schedule: Schedule) -> m.ScheduleShown:
    return m.ScheduleShown(
        name=schedule.name,
        every_ms=schedule.every_ms,
        cron=schedule.cron,
        timezone=schedule.timezone,
        missed=schedule.missed.value,
        catch_up=schedule.catch_up,
        grace_ms=schedule.grace_ms,
        last_at=schedule.last_at,
        next_ticks=list(schedule.next_ticks),
        **said(schedule.options, schedule.body),
        **_timing(schedule.options),
    )


def _timing(options: Options) -> dict[str, Any]:
    """What the options say of time and attempts."""
    names = ("dedup_ms", "delay_ms", "ttl_ms", "max_attempts", "lease_ms")
    retry = None if options.retry is None else plain(options.retry)
    return {name: getattr(options, name) for name in names} | {"retry": retry}
