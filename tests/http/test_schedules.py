"""Schedules over HTTP: set, list, show, remove, and what their ticks enqueue."""

import pytest

from tests.http.shapes import refused
from tests.http.ways import everywhere

MINUTE_MS = 60_000


@everywhere
async def test_a_schedule_shows_its_next_five_ticks(client, emails, clock):
    new = {"every_ms": MINUTE_MS, "payload": {"report": 1}, "priority": 2}

    response = await client.put(f"{emails}/schedules/report", json=new)

    shown = response.json()
    assert response.status_code == 200
    assert shown["next_ticks"] == [clock.now + n * MINUTE_MS for n in range(1, 6)]
    assert {name: shown[name] for name in new} == new
    assert (shown["name"], shown["missed"], shown["content_type"]) == (
        "report",
        "run_once",
        "application/json",
    )
    assert (await client.get(f"{emails}/schedules/report")).json() == shown
    assert (await client.get(f"{emails}/schedules")).json() == [shown]


async def test_a_schedule_follows_cron_in_its_zone(client, emails):
    new = {"cron": "30 8 * * 1-5", "timezone": "Europe/Berlin", "payload": 1, "missed": "skip"}
    shown = (await client.put(f"{emails}/schedules/morning", json=new)).json()
    assert {name: shown[name] for name in new} == new
    assert len(shown["next_ticks"]) == 5


async def test_every_tick_enqueues_its_payload(client, emails, clock, until):
    await client.put(f"{emails}/schedules/report", json={"every_ms": 1_000, "payload_base64": "/w=="})
    clock.advance(1_000)

    async def is_there():
        return (await client.get(f"{emails}/stats")).json()["ready"] == 1

    await until(is_there)
    message = (await client.get(f"{emails}/receive")).json()
    assert message["payload_base64"] == "/w=="
    assert message["headers"] == {"hq-schedule": "report", "hq-tick-at": str(clock.now)}
    assert (await client.get(f"{emails}/schedules/report")).json()["last_at"] == clock.now


async def test_a_schedule_is_changed_by_its_name(client, emails):
    await client.put(f"{emails}/schedules/a", json={"every_ms": 1_000, "payload": 1})
    await client.put(f"{emails}/schedules/a", json={"every_ms": 2_000, "payload": 2})
    [shown] = (await client.get(f"{emails}/schedules")).json()
    assert (shown["every_ms"], shown["payload"]) == (2_000, 2)


@everywhere
async def test_a_schedule_that_is_removed_is_gone(client, emails):
    await client.put(f"{emails}/schedules/a", json={"every_ms": 1_000, "payload": 1})
    assert (await client.delete(f"{emails}/schedules/a")).status_code == 204
    assert (await client.get(f"{emails}/schedules")).json() == []
    refused(await client.get(f"{emails}/schedules/a"), 404, "schedule_not_found")
    refused(await client.delete(f"{emails}/schedules/a"), 404, "schedule_not_found")


@pytest.mark.parametrize(
    "new",
    [
        {},
        {"payload": 1},
        {"every_ms": 1_000},
        {"every_ms": 1_000, "payload": 1, "payload_base64": ""},
        {"every_ms": 0, "payload": 1},
        {"every_ms": 1_000, "cron": "* * * * *", "payload": 1},
        {"every_ms": 1_000, "timezone": "UTC", "payload": 1},
        {"cron": "nonsense", "payload": 1},
        {"cron": "61 * * * *", "payload": 1},
        {"cron": "0 0 31 2 *", "payload": 1},
        {"cron": "* * * * *", "timezone": "Mars/Base", "payload": 1},
        {"cron": "* * * * *", "timezone": "../etc", "payload": 1},
        {"every_ms": 1_000, "payload": 1, "missed": "other"},
        {"every_ms": 1_000, "payload": 1, "catch_up": 0},
        {"every_ms": 1_000, "payload": 1, "unknown": 0},
        [],
    ],
)
async def test_a_schedule_that_makes_no_sense_is_refused(client, emails, new):
    refused(await client.put(f"{emails}/schedules/a", json=new), 400, "invalid_input")
    refused(await client.get(f"{emails}/schedules/a"), 404, "schedule_not_found")


async def test_a_schedule_needs_its_queue_and_a_name(client, emails):
    new = {"every_ms": 1_000, "payload": 1}
    refused(await client.put("/queues/none/schedules/a", json=new), 404, "queue_not_found")
    refused(await client.get("/queues/none/schedules"), 404, "queue_not_found")
    refused(await client.get("/queues/none/schedules/a"), 404, "queue_not_found")
    refused(await client.delete("/queues/none/schedules/a"), 404, "queue_not_found")
    refused(await client.put(f"{emails}/schedules/{'n' * 129}", json=new), 400, "invalid_input")
    sent = {"content": b"{}", "headers": {"content-type": "text/plain"}}
    refused(await client.put(f"{emails}/schedules/a", **sent), 415, "unsupported_media_type")
