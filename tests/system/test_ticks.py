"""Each tick yields exactly one message, through restarts and whatever the wall clock does."""

from datetime import UTC, datetime

import pytest

import hq
from hq.testing import FrozenClock, SeededChance

MINUTE = 60_000


async def ticks_in(queue):
    """The ticks whose messages are there, in their order."""
    return [int(message.headers["hq-tick-at"]) for message in await queue.browse(limit=1_000)]


async def opened(path, now, work):
    """Open the store at a time, do some work, and close it."""
    clock = FrozenClock(now)
    async with hq.open(path, clock=clock, chance=SeededChance()) as system:
        return await work(system, clock)


async def test_a_restart_at_any_moment_repeats_no_tick_and_loses_none(tmp_path, until):
    path, start = tmp_path / "hq.db", 10 * MINUTE

    async def begin(system, clock):
        queue = await system.create_queue("reports")
        await queue.set_schedule("minutely", "x", every_ms=MINUTE, missed="catch_up", catch_up=100)

    await opened(path, start, begin)
    found = []
    for step in range(1, 9):
        now = start + step * MINUTE // 2
        expected = [start + n * MINUTE for n in range(1, step // 2 + 1)]

        async def look(system, clock, expected=expected):
            queue = system.queue("reports")

            async def there():
                return len(await ticks_in(queue)) >= len(expected)

            await until(there)
            return await ticks_in(queue)

        found = await opened(path, now, look)
        assert found == expected

    assert found == [start + n * MINUTE for n in range(1, 5)]


@pytest.mark.parametrize("jump", [-30 * MINUTE, -5 * 366 * 24 * 60 * MINUTE, 0])
async def test_a_wall_that_goes_back_repeats_no_tick(tmp_path, until, jump):
    path, start = tmp_path / "hq.db", 6 * 366 * 24 * 60 * MINUTE

    async def begin(system, clock):
        queue = await system.create_queue("reports")
        await queue.set_schedule("minutely", "x", every_ms=MINUTE)
        clock.advance(MINUTE)

        async def ticked():
            return len(await ticks_in(queue)) == 1

        await until(ticked)

    async def look(system, clock):
        queue = system.queue("reports")
        await queue.stats()
        return await ticks_in(queue)

    await opened(path, start, begin)
    assert await opened(path, start + MINUTE + jump, look) == [start + MINUTE]


@pytest.mark.parametrize(
    ("missed", "count"),
    [({"missed": "skip"}, 0), ({"missed": "run_once"}, 1), ({"missed": "catch_up", "catch_up": 3}, 3)],
)
async def test_a_wall_that_jumps_ahead_makes_no_storm(tmp_path, until, missed, count):
    path = tmp_path / "hq.db"

    async def begin(system, clock):
        queue = await system.create_queue("reports")
        await queue.set_schedule("minutely", "x", every_ms=MINUTE, grace_ms=1_000, **missed)

    async def look(system, clock):
        queue = system.queue("reports")

        async def dealt_with():
            [schedule] = await queue.schedules()
            return schedule.next_ticks[0] > clock.now

        await until(dealt_with)
        return await ticks_in(queue)

    await opened(path, 0, begin)
    # A day later, half a minute past a tick: all of them were missed.
    found = await opened(path, 24 * 60 * MINUTE + MINUTE // 2, look)
    assert found == [(24 * 60 - n) * MINUTE for n in reversed(range(count))]


async def test_a_leap_day_and_a_month_end_tick_once(tmp_path, until):
    day = 24 * 60 * MINUTE
    start = 1_835_308_800_000  # 2028-02-28 00:00 UTC
    clock = FrozenClock(start)
    async with hq.open("memory:", clock=clock) as system:
        queue = await system.create_queue("reports")
        await queue.set_schedule("last", "x", cron="0 12 29,31 * *")
        for _ in range(34):
            clock.advance(day)

            async def dealt_with():
                [schedule] = await queue.schedules()
                return schedule.next_ticks[0] > clock.now

            await until(dealt_with)
        assert [(tick - start) // day for tick in await ticks_in(queue)] == [1, 30, 32]


@pytest.mark.parametrize(
    ("start", "half_hours"),
    [
        # 2:30 is skipped on the second day, and its tick comes when the hour is over.
        (datetime(2026, 3, 28, tzinfo=UTC), [3, 48 + 2, 96 + 1]),
        # 2:30 comes twice on the second day, and ticks the first time.
        (datetime(2026, 10, 24, tzinfo=UTC), [1, 48 + 1, 96 + 3]),
    ],
)
async def test_a_wall_that_is_put_forward_or_back_ticks_once_a_day(until, start, half_hours):
    begin = int(start.timestamp()) * 1_000
    clock = FrozenClock(begin)
    async with hq.open("memory:", clock=clock) as system:
        queue = await system.create_queue("reports")
        await queue.set_schedule("nightly", "x", cron="30 2 * * *", timezone="Europe/Berlin")
        for _ in range(3 * 48):
            clock.advance(MINUTE * 30)

            async def dealt_with():
                [schedule] = await queue.schedules()
                return schedule.next_ticks[0] > clock.now

            await until(dealt_with)
        assert [(tick - begin) // (30 * MINUTE) for tick in await ticks_in(queue)] == half_hours
