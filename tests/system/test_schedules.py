"""Schedules of a queue: set, listed with their next ticks, removed."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

import hq

MINUTE_MS = 60_000


def at(*fields, zone=UTC):
    return round(datetime(*fields, tzinfo=zone).timestamp() * 1_000)


async def received(queue):
    return [message.payload for message in await queue.receive(100)]


async def test_an_interval_enqueues_its_payload_again_and_again(queue, clock, until):
    start = clock.now
    await queue.set_schedule("report", {"kind": "daily"}, every_ms=MINUTE_MS, priority=3)

    for count in (1, 2):
        clock.advance(minutes=1)
        await until(lambda count=count: _has(queue, count))

    first, second = await queue.receive(2)
    assert (first.payload, first.content_type, first.priority) == ({"kind": "daily"}, "application/json", 3)
    assert second.headers == {"hq-schedule": "report", "hq-tick-at": str(start + 2 * MINUTE_MS)}


async def _has(queue, count):
    return (await queue.stats()).ready == count


async def test_cron_follows_the_wall_of_its_zone(queue, clock):
    berlin = ZoneInfo("Europe/Berlin")
    clock.now = at(2026, 3, 28, 12, 0)

    schedule = await queue.set_schedule("report", "x", cron="30  8 * * *", timezone="Europe/Berlin")

    assert schedule.next_ticks == tuple(
        at(2026, month, day, 8, 30, zone=berlin) for month, day in ((3, 29), (3, 30), (3, 31), (4, 1), (4, 2))
    )
    assert (schedule.every_ms, schedule.cron, schedule.timezone) == (None, "30 8 * * *", "Europe/Berlin")


async def test_cron_without_a_zone_is_in_utc(queue, clock):
    clock.now = at(2026, 3, 28, 12, 0)
    schedule = await queue.set_schedule("report", "x", cron="0 0 1 * *")
    assert (schedule.next_ticks[0], schedule.timezone) == (at(2026, 4, 1), None)


async def test_schedules_are_listed_with_all_they_were_set_with_and_their_next_five_ticks(queue, clock):
    start = clock.now
    retry = hq.RetryPolicy(base_ms=7)
    await queue.set_schedule(
        "b",
        "text",
        every_ms=1_000,
        missed="catch_up",
        catch_up=3,
        grace_ms=5,
        headers={"h": "v"},
        retry=retry,
    )
    await queue.set_schedule("a", [1], every_ms=MINUTE_MS)

    first, second = await queue.schedules()

    assert (first.name, first.payload, first.missed, first.grace_ms) == ("a", [1], hq.Missed.RUN_ONCE, 60_000)
    assert (second.name, second.every_ms, second.cron, second.timezone) == ("b", 1_000, None, None)
    assert (second.payload, second.body, second.last_at) == ("text", b"text", None)
    assert (second.missed, second.catch_up, second.grace_ms) == (hq.Missed.CATCH_UP, 3, 5)
    assert (second.options.headers, second.options.retry) == ((("h", "v"),), retry)
    assert second.next_ticks == tuple(start + n * 1_000 for n in range(1, 6))


async def test_a_listed_schedule_says_when_it_last_ticked_and_shows_no_payload(queue, clock, until):
    tick_at = clock.now + MINUTE_MS
    await queue.set_schedule("report", "secret", every_ms=MINUTE_MS)
    clock.advance(minutes=1)
    await until(lambda: _has(queue, 1))

    [schedule] = await queue.schedules()

    assert (schedule.last_at, schedule.next_ticks[0]) == (tick_at, tick_at + MINUTE_MS)
    assert "secret" not in repr(schedule)


async def test_ticks_that_nobody_was_there_for_follow_the_policy(tmp_path, clock, until):
    async with hq.open(tmp_path / "hq.db", clock=clock) as system:
        for missed in hq.Missed:
            queue = await system.create_queue(missed.value)
            await queue.set_schedule("report", "x", every_ms=MINUTE_MS, missed=missed, catch_up=3, grace_ms=0)
    clock.advance(minutes=5, ms=1)

    async with hq.open(tmp_path / "hq.db", clock=clock) as system:
        for missed, count in (("skip", 0), ("run_once", 1), ("catch_up", 3)):
            queue = system.queue(missed)

            async def caught_up(queue=queue):
                [schedule] = await queue.schedules()
                return schedule.last_at is not None

            await until(caught_up)
            assert (await queue.stats()).ready == count


async def test_a_program_that_sets_its_schedules_at_each_start_does_not_put_them_off(queue, clock, until):
    await queue.set_schedule("report", "old", every_ms=MINUTE_MS)
    clock.advance(seconds=59)

    again = await queue.set_schedule("report", "new", every_ms=MINUTE_MS)
    clock.advance(seconds=1)
    await until(lambda: _has(queue, 1))

    assert again.next_ticks[0] == clock.now
    assert await received(queue) == ["new"]


async def test_a_removed_schedule_ticks_no_more(queue, clock):
    await queue.set_schedule("report", "x", every_ms=MINUTE_MS)
    await queue.remove_schedule("report")
    clock.advance(minutes=5)

    assert (await queue.schedules(), await received(queue)) == ([], [])
    with pytest.raises(hq.ScheduleNotFound):
        await queue.remove_schedule("report")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({}, "every_ms or cron"),
        ({"every_ms": 1_000, "cron": "* * * * *"}, "every_ms or cron"),
        ({"every_ms": 0}, "every_ms must be an integer"),
        ({"every_ms": "5m"}, "every_ms must be an integer"),
        ({"every_ms": 1_000, "timezone": "Europe/Berlin"}, "timezone"),
        ({"cron": "61 * * * *"}, "'61 \\* \\* \\* \\*': bad minute"),
        ({"cron": "0 0 30 2 *"}, "bad day-of-month"),
        ({"cron": "* * *"}, "five fields"),
        ({"cron": "* * * * * *"}, "five fields"),
        ({"cron": "@daily"}, "five fields"),
        ({"cron": "* * * * * in Mars"}, "five fields"),
        ({"cron": 5}, "cron must be a text"),
        ({"cron": "* " * 5_000}, "cron must be a text"),
        ({"cron": "* * * * *", "timezone": "Atlantis"}, "'Atlantis' is no time zone"),
        ({"cron": "* * * * *", "timezone": ""}, "'' is no time zone"),
        ({"cron": "* * * * *", "timezone": 5}, "timezone must be a text"),
        ({"every_ms": 1_000, "missed": "ignore"}, "missed must be one of"),
        ({"every_ms": 1_000, "catch_up": 0}, "catch_up"),
        ({"every_ms": 1_000, "grace_ms": -1}, "grace_ms"),
        ({"every_ms": 1_000, "priorty": 1}, "did you mean 'priority'"),
        ({"every_ms": 1_000, "name": ""}, "a schedule has a name"),
        ({"every_ms": 1_000, "name": 5}, "schedule name must be a text"),
        ({"every_ms": 1_000, "payload": float("nan")}, "no JSON value"),
    ],
)
async def test_what_is_no_schedule_is_refused_and_told_why(queue, wrong, told):
    with pytest.raises(hq.InvalidInput, match=told):
        await queue.set_schedule(**{"name": "report", "payload": "x", **wrong})
    assert await queue.schedules() == []


async def test_a_payload_that_is_too_large_cannot_be_scheduled(system):
    queue = await system.create_queue("small", max_payload_bytes=3)
    with pytest.raises(hq.PayloadTooLarge):
        await queue.set_schedule("report", "long", every_ms=1_000)
