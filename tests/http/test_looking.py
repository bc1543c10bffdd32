"""Looking at a queue and its messages, which changes nothing."""

import pytest

from tests.http.shapes import refused
from tests.http.ways import everywhere

NOBODY = "00000000-0000-8000-8400-0000000fffff"


async def enqueue(client, *payloads, **options):
    """Enqueue each, and give their ids."""
    items = [{"payload": payload, **options} for payload in payloads]
    results = (await client.post("/queues/emails/messages", json=items)).json()["results"]
    return [result["id"] for result in results]


async def fail(client, count):
    """Make dead letters of the next so many, and give their ids."""
    received = (await client.post(f"/queues/emails/poll?batch={count}")).json()["messages"]
    held = [{"id": one["id"], "token": one["token"], "error": "broken"} for one in received]
    await client.post("/queues/emails/fail", json=held)
    return [one["id"] for one in received]


@everywhere
async def test_stats_count_what_there_is_and_what_there_was(client, emails, clock):
    await enqueue(client, 1, 2, 3, 4)
    await enqueue(client, 5, delay_ms=1_000)
    message = (await client.get(f"{emails}/receive")).json()
    await client.put(f"/messages/{message['id']}/complete")
    await fail(client, 1)
    await client.get(f"{emails}/receive")

    assert (await client.get(f"{emails}/stats")).json() == {
        "ready": 1,
        "delayed": 1,
        "leased": 1,
        "failed": 1,
        "moving": 0,
        "enqueued": 5,
        "completed": 1,
        "expired": 0,
        "deleted": 0,
        "purged": 0,
        "moved": 0,
        "receives": 3,
        "retries": 0,
        "lapses": 0,
        "paused": None,
        "next_lease_end": clock.now + 30_000,
        "sequence": 11,
        "inbox": 0,
    }


@everywhere
async def test_a_peek_shows_the_next_and_takes_nothing(client, emails, clock):
    first, second, *_ = await enqueue(client, "a", "b", "c")

    response = await client.get(f"{emails}/peek")

    assert response.json() == {
        "messages": [
            {
                "id": first,
                "queue": "emails",
                "state": "ready",
                "payload": "a",
                "content_type": "application/json",
                "attempts": 0,
                "receives": 0,
                "enqueued_at": clock.now,
                "available_at": clock.now,
            }
        ]
    }
    shown = (await client.get(f"{emails}/peek?limit=2")).json()["messages"]
    assert [message["id"] for message in shown] == [first, second]
    assert (await client.get(f"{emails}/stats")).json()["leased"] == 0


@everywhere
async def test_what_waits_or_is_leased_is_read_in_pages(client, emails):
    ids = await enqueue(client, 1, 2, 3)
    await client.get(f"{emails}/receive")
    await enqueue(client, 4, delay_ms=1_000)

    page = (await client.get(f"{emails}/messages?limit=2")).json()
    rest = (await client.get(f"{emails}/messages?limit=2&after={page['next']}")).json()
    end = (await client.get(f"{emails}/messages?limit=2&after={rest['next']}")).json()

    assert [message["state"] for message in page["messages"]] == ["leased", "ready"]
    assert [message["id"] for message in page["messages"]] == ids[:2]
    assert page["messages"][0]["lease_expires_at"]
    assert "token" not in page["messages"][0]
    assert [message["payload"] for message in rest["messages"]] == [3, 4]
    assert end == {"messages": []}


@everywhere
async def test_dead_letters_are_read_in_pages(client, emails, clock):
    await enqueue(client, 1, 2, 3)
    ids = await fail(client, 3)

    page = (await client.get(f"{emails}/dlq?limit=2")).json()
    rest = (await client.get(f"{emails}/dlq?limit=2&after={page['next']}")).json()

    assert [message["id"] for message in page["messages"] + rest["messages"]] == ids
    assert "next" not in rest
    shown = page["messages"][0]
    assert (shown["state"], shown["error"], shown["failed_at"]) == ("failed", "broken", clock.now)
    assert (await client.get(f"{emails}/messages")).json() == {"messages": []}


@everywhere
async def test_one_message_is_shown_in_every_state(client, emails, clock):
    [ready] = await enqueue(client, {"a": 1}, group="g", headers={"h": "v"})
    [delayed] = await enqueue(client, 2, delay_ms=100, ttl_ms=900)
    shown = (await client.get(f"{emails}/messages/{ready}")).json()
    assert (shown["state"], shown["group"], shown["headers"]) == ("ready", "g", {"h": "v"})
    shown = (await client.get(f"{emails}/messages/{delayed}")).json()
    assert (shown["state"], shown["expires_at"]) == ("delayed", clock.now + 900)
    await client.get(f"{emails}/receive?holder=me")
    shown = (await client.get(f"{emails}/messages/{ready}")).json()
    assert (shown["state"], shown["holder"], shown["lease_expires_at"]) == (
        "leased",
        "me",
        clock.now + 30_000,
    )
    await client.put(f"/messages/{ready}/fail")
    assert (await client.get(f"{emails}/messages/{ready}")).json()["reason"] == "failed"


async def test_a_message_that_is_over_is_not_found(client, emails, clock):
    gone, expired = await enqueue(client, 1, 2, ttl_ms=100)
    await client.delete(f"{emails}/messages/{gone}")
    clock.advance(100)
    for message in (gone, expired, NOBODY):
        refused(await client.get(f"{emails}/messages/{message}"), 404, "message_not_found")
        refused(await client.get(f"{emails}/messages/{message}/explain"), 404, "message_not_found")


async def explain(client, message):
    told = (await client.get(f"/queues/emails/messages/{message}/explain")).json()
    return told["state"], [blocker["code"] for blocker in told["blockers"]]


@everywhere
async def test_it_is_explained_why_a_message_waits(client, emails, clock):
    first, second = await enqueue(client, 1, 2, group="g")
    assert await explain(client, first) == ("ready", [])
    await client.get(f"{emails}/receive?holder=me")
    told = (await client.get(f"{emails}/messages/{second}/explain")).json()
    assert told == {
        "state": "ready",
        "blockers": [
            {"code": "group_leased", "until": clock.now + 30_000, "message_id": first, "reason": "me"}
        ],
    }
    assert await explain(client, first) == ("leased", ["leased"])
    await client.put(f"/messages/{first}/fail")
    assert await explain(client, first) == ("failed", ["failed"])


async def test_every_reason_to_wait_is_told(client, emails):
    [delayed] = await enqueue(client, 1, delay_ms=100)
    assert await explain(client, delayed) == ("delayed", ["delayed"])
    one, other = await enqueue(client, 1, 2, group="g")
    assert await explain(client, other) == ("ready", ["group_order"])
    await client.post(f"{emails}/pause")
    await client.post(f"{emails}/pause?group=g")
    assert await explain(client, one) == ("ready", ["queue_paused", "group_paused"])


@pytest.mark.parametrize(
    "route",
    ["stats", "peek", "messages", "dlq", f"messages/{NOBODY}", f"messages/{NOBODY}/explain"],
)
async def test_a_queue_that_is_not_there_shows_nothing(client, route):
    refused(await client.get(f"/queues/none/{route}"), 404, "queue_not_found")


@pytest.mark.parametrize(
    "route",
    [
        "stats?x=1",
        "peek?limit=0",
        "peek?limit=1001",
        "peek?after=x",
        "messages?limit=0",
        "messages?limit=1001",
        "messages?after=nonsense",
        "dlq?limit=-1",
        "dlq?after=nonsense",
        "messages/nonsense",
        "messages/nonsense/explain",
        f"messages/{NOBODY}?x=1",
    ],
)
async def test_a_look_that_makes_no_sense_is_refused(client, emails, route):
    refused(await client.get(f"{emails}/{route}"), 400, "invalid_input")


async def test_a_page_after_a_message_of_another_queue_is_not_found(client, emails):
    await client.post("/queues?name=other")
    other = (await client.post("/queues/other/enqueue", content=b"x")).json()["id"]
    refused(await client.get(f"{emails}/messages?after={other}"), 404, "message_not_found")
    refused(await client.get(f"{emails}/messages/{other}"), 404, "message_not_found")
