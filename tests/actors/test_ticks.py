"""When schedules tick, across missed time and the changes of a zone's clock."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from hq.actors.ticks import due_ticks, first_tick
from hq.errors import InvalidInput

BERLIN = ZoneInfo("Europe/Berlin")


def at(*fields, zone=UTC):
    return round(datetime(*fields, tzinfo=zone).timestamp() * 1_000)


def test_an_interval_ticks_from_the_tick_before():
    assert due_ticks("every 100", 1_000, 1_250) == ((1_000, 1_100, 1_200), 1_300)
    assert due_ticks("every 100", 1_000, 999) == ((), 1_000)


def test_of_very_many_missed_ticks_the_latest_are_due():
    due, next_at = due_ticks("every 10", 0, 1_000_000)

    assert len(due) == 1_000
    assert due[-1] == 1_000_000
    assert next_at == 1_000_010


def test_cron_ticks_by_the_wall_of_its_zone():
    spec = "cron 30 8 * * 1-5 in Europe/Berlin"
    friday = at(2026, 3, 27, 8, 30, zone=BERLIN)
    monday = at(2026, 3, 30, 8, 30, zone=BERLIN)

    assert first_tick(spec, friday) == monday
    assert due_ticks(spec, friday, friday + 60_000) == ((friday,), monday)
    assert monday - friday == 3 * 86_400_000 - 3_600_000


def test_a_tick_in_the_hour_a_zone_skips_comes_once():
    spec = "cron 30 2 * * * in Europe/Berlin"
    before = at(2026, 3, 28, 2, 30, zone=BERLIN)
    after = at(2026, 3, 30, 2, 30, zone=BERLIN)

    due, _ = due_ticks(spec, first_tick(spec, before), after)

    assert len(due) == 2


def test_a_tick_in_the_hour_a_zone_repeats_comes_once():
    spec = "cron 30 2 * * * in Europe/Berlin"
    before = at(2026, 10, 24, 12, 0, zone=BERLIN)
    after = at(2026, 10, 25, 12, 0, zone=BERLIN)

    due, _ = due_ticks(spec, first_tick(spec, before), after)

    assert len(due) == 1


@pytest.mark.parametrize(
    "spec",
    ["", "hourly", "every", "every 0", "every -5", "every x", "cron", "cron * * *", "cron 61 * * * *",
     "cron 0 0 30 2 *", "cron * * * * * in Atlantis", "cron * * * * * in ../etc/passwd"],
)  # fmt: skip
def test_what_is_no_schedule_is_refused(spec):
    with pytest.raises(InvalidInput):
        first_tick(spec, 0)


@pytest.mark.parametrize(
    ("fields", "after", "expected"),
    [
        # Only months that have the day; leap days only in leap years, 2100 is none.
        ("0 0 31 * *", (2026, 1, 31, 0, 0), [(2026, 3, 31), (2026, 5, 31), (2026, 7, 31), (2026, 8, 31)]),
        ("0 0 29 2 *", (2026, 1, 1), [(2028, 2, 29), (2032, 2, 29)]),
        ("0 0 29 2 *", (2096, 3, 1), [(2104, 2, 29)]),
        ("0 0 28-31 2 *", (2028, 2, 27), [(2028, 2, 28), (2028, 2, 29), (2029, 2, 28)]),
        # A day of the month or a day of the week, if both are said.
        (
            "0 0 13 * 5",
            (2026, 2, 1),
            [(2026, 2, 6), (2026, 2, 13), (2026, 2, 20), (2026, 2, 27), (2026, 3, 6)],
        ),
        ("0 0 1 1 *", (2026, 12, 31, 23, 59), [(2027, 1, 1), (2028, 1, 1)]),
        # Always strictly later.
        ("* * * * *", (2026, 1, 31, 23, 59), [(2026, 2, 1, 0, 0), (2026, 2, 1, 0, 1)]),
    ],
)
def test_cron_knows_the_calendar(fields, after, expected):
    tick, found = at(*after), []
    for _ in expected:
        tick = first_tick(f"cron {fields}", tick)
        found.append(tick)
    assert found == [at(*day) for day in expected]


def ticks_of(spec, start, end):
    due, _ = due_ticks(spec, first_tick(spec, start - 1), end - 1)
    return due


@pytest.mark.parametrize(
    ("fields", "day", "hours"),
    [
        # Berlin skips from 2:00 to 3:00 on 2026-03-29 and repeats 2:00 to 3:00 on 2026-10-25.
        ("0 * * * *", (2026, 3, 29), 23),
        ("0 * * * *", (2026, 10, 25), 25),
        ("*/30 * * * *", (2026, 3, 29), 46),
        ("*/30 * * * *", (2026, 10, 25), 50),
        ("30 2 * * *", (2026, 3, 29), 1),
        ("30 2 * * *", (2026, 10, 25), 1),
    ],
)
def test_a_day_that_is_shorter_or_longer_has_its_ticks_once_each(fields, day, hours):
    start = at(*day, zone=BERLIN)
    end = round(datetime(*day[:2], day[2] + 1, tzinfo=BERLIN).timestamp() * 1_000)

    found = ticks_of(f"cron {fields} in Europe/Berlin", start, end)

    assert len(found) == len(set(found)) == hours


def test_a_skipped_hour_ticks_when_it_is_over():
    start = at(2026, 3, 29, zone=BERLIN)
    [tick] = ticks_of("cron 30 2 * * * in Europe/Berlin", start, start + 23 * 3_600_000)
    assert tick == at(2026, 3, 29, 1, 0)  # 3:00 in Berlin, UTC+2


def test_an_interval_knows_no_calendar():
    start = at(2026, 3, 29, zone=BERLIN)
    due, _ = due_ticks("every 3600000", start, start + 24 * 3_600_000)
    assert len(due) == 25
