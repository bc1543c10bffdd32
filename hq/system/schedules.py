"""Schedules of a queue, as a program sets and sees them. Which ticks they have, hq.actors.ticks knows."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypedDict

import anyio.to_thread
from cronsim import CronSim, CronSimError

from hq.actors.ticks import first_tick
from hq.domain import schedules as domain
from hq.domain.commands import ListSchedules, SetSchedule
from hq.domain.messages import MAX_KEY_CHARS, MAX_NAME_CHARS, Options, short_text
from hq.domain.schedules import Missed, Planned
from hq.domain.settings import DAY_MS, in_range
from hq.errors import InvalidInput
from hq.system.keywords import EnqueueKeywords, Outgoing, check_known, member
from hq.system.line import Line
from hq.system.payloads import Payload, decode

MAX_EVERY_MS = 366 * DAY_MS
CRON_FIELDS = 5
SHOWN_TICKS = 5
EPOCH = datetime.fromtimestamp(0, UTC)


class RepeatKeywords(TypedDict, total=False):
    """When a schedule ticks, `every_ms` or by `cron`, and what becomes of ticks nobody was there for."""

    every_ms: int
    cron: str
    timezone: str
    missed: Missed | str
    catch_up: int
    grace_ms: int


class ScheduleKeywords(RepeatKeywords, EnqueueKeywords, total=False):
    """All that `set_schedule` takes: when it ticks, and what a producer may say of a message."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as it stands: when it ticks, what each tick enqueues, and its next five ticks."""

    name: str
    every_ms: int | None
    cron: str | None
    timezone: str | None
    missed: Missed
    catch_up: int
    grace_ms: int
    body: bytes = field(repr=False)
    options: Options = field(repr=False)
    last_at: int | None
    next_ticks: tuple[int, ...]

    @property
    def payload(self) -> Any:
        """What each tick enqueues: bytes, text or a JSON value, as the content type says."""
        return decode(self.body, self.options.content_type)


async def set_schedule(
    line: Line, queue: str, name: str, payload: Payload, how: ScheduleKeywords
) -> Schedule:
    """Add a schedule or change the one of this name."""
    number = line.number(queue)
    schedule = _schedule(name, payload, {**how})
    # In a thread, here and below: the calendar of a zone is a file.
    first_at = await anyio.to_thread.run_sync(first_tick, schedule.spec, line.node.clock.now)
    planned: Planned = await line.node.post(number, SetSchedule(schedule, first_at))
    return await anyio.to_thread.run_sync(_shown, planned)


async def schedules(line: Line, queue: str) -> list[Schedule]:
    """All schedules of a queue, by name."""
    planned: list[Planned] = await line.ask(queue, ListSchedules())
    return await anyio.to_thread.run_sync(lambda: [_shown(one) for one in planned])


def _schedule(name: str, payload: Payload, how: dict[str, Any]) -> domain.Schedule:
    check_known(how, ScheduleKeywords.__annotations__)
    repeat = {keyword: how.pop(keyword) for keyword in RepeatKeywords.__annotations__ if keyword in how}
    spec = _spec(repeat)
    if "missed" in repeat:
        repeat["missed"] = member(Missed, "missed", repeat["missed"])
    message = Outgoing(payload, **how).command
    return domain.Schedule(name, spec, message.payload, message.options, **repeat)


def _spec(repeat: dict[str, Any]) -> str:
    """The spec hq.actors.ticks reads; the keywords it is made of are taken out."""
    every_ms, cron, timezone = (repeat.pop(keyword, None) for keyword in ("every_ms", "cron", "timezone"))
    if (every_ms is None) is (cron is None):
        raise InvalidInput("a schedule has either every_ms or cron")
    if every_ms is not None:
        in_range("every_ms", every_ms, 1, MAX_EVERY_MS)
        if timezone is not None:
            raise InvalidInput("an interval has no timezone; cron has")
    else:
        _check_cron(cron, timezone)
    return spec_of(every_ms, cron, timezone)


def spec_of(every_ms: int | None, cron: str | None, timezone: str | None) -> str:
    """The spec of an interval, or of cron fields and a zone."""
    if cron is None:
        return f"every {every_ms}"
    fields = " ".join(cron.split())
    return f"cron {fields}" if timezone is None else f"cron {fields} in {timezone}"


def _check_cron(cron: str, timezone: str | None) -> None:
    short_text("cron", cron, MAX_KEY_CHARS)
    short_text("timezone", timezone, MAX_NAME_CHARS)
    fields = " ".join(cron.split())
    if fields.count(" ") != CRON_FIELDS - 1:
        raise InvalidInput("cron has five fields: minute, hour, day of month, month and day of week")
    try:
        CronSim(fields, EPOCH)
    except CronSimError as error:
        raise InvalidInput(f"cron {fields!r}: {str(error).lower()}") from None
    if timezone == "":
        raise InvalidInput("'' is no time zone")


def _shown(planned: Planned) -> Schedule:
    schedule = planned.schedule
    ticks = [planned.next_at]
    while len(ticks) < SHOWN_TICKS:
        ticks.append(first_tick(schedule.spec, ticks[-1]))
    return Schedule(
        name=schedule.name,
        **parts_of(schedule.spec),
        missed=schedule.missed,
        catch_up=schedule.catch_up,
        grace_ms=schedule.grace_ms,
        body=schedule.payload,
        options=schedule.options,
        last_at=planned.last_at,
        next_ticks=tuple(ticks),
    )


def parts_of(spec: str) -> dict[str, Any]:
    """The keywords a spec was made of."""
    kind, _, rest = spec.partition(" ")
    if kind == "every":
        return {"every_ms": int(rest), "cron": None, "timezone": None}
    fields, _, zone = rest.partition(" in ")
    return {"every_ms": None, "cron": fields, "timezone": zone or None}
