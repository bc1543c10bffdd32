"""When schedules tick. A spec is `every <ms>`, or `cron <five fields>` with a time zone behind `in`.

    every 60000
    cron 30 8 * * 1-5 in Europe/Berlin

An interval counts from the tick before. Cron follows the wall of its zone: in the hour a zone skips its ticks
come once, after it, and in the hour it repeats they come once.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from hq.domain.schedules import MAX_CATCH_UP
from hq.errors import InvalidInput


def due_ticks(spec: str, next_at: int, now: int) -> tuple[tuple[int, ...], int]:
    """The ticks from `next_at` up to now, the latest ones if they are very many; and the one after."""
    interval_ms = _interval_ms(spec)
    if interval_ms is not None:
        missed = max(0, (now - next_at) // interval_ms - MAX_CATCH_UP + 1)
        first = next_at + missed * interval_ms
        due = tuple(range(first, now + 1, interval_ms))
        return due, (due[-1] + interval_ms if due else next_at)
    due_list: list[int] = []
    tick = next_at
    while tick <= now:
        due_list.append(tick)
        tick = _cron_after(spec, tick)
    return tuple(due_list[-MAX_CATCH_UP:]), tick


def first_tick(spec: str, now: int) -> int:
    """The first tick after now; InvalidInput if the spec is not one."""
    interval_ms = _interval_ms(spec)
    return now + interval_ms if interval_ms is not None else _cron_after(spec, now)


def _interval_ms(spec: str) -> int | None:
    word, _, rest = spec.partition(" ")
    if word != "every":
        return None
    if not rest.isdecimal() or not 1 <= int(rest) <= 366 * 86_400_000:
        raise InvalidInput("an interval is `every <ms>`, from 1 ms to 366 days")
    return int(rest)


def _cron_after(spec: str, instant: int) -> int:
    word, _, rest = spec.partition(" ")
    if word != "cron":
        raise InvalidInput("a schedule is `every <ms>` or `cron <five fields> [in <time zone>]`")
    fields, _, zone = rest.partition(" in ")
    start = datetime.fromtimestamp(instant / 1_000, _zone(zone))
    try:
        tick = next(CronSim(fields, start))
    except (CronSimError, StopIteration):
        raise InvalidInput(f"{fields!r} is no cron expression that ever comes true") from None
    return round(tick.timestamp() * 1_000)


def _zone(name: str) -> tzinfo:
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise InvalidInput(f"{name!r} is no time zone") from None
