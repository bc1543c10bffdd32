"""Progress and results over HTTP."""

import asyncio

import pytest

from tests.http.shapes import refused
from tests.http.ways import everywhere


@pytest.fixture
async def held(client, emails):
    """A message that the caller holds and whose result is wanted for a minute."""
    await client.post(f"{emails}/messages", json={"payload": 1, "result_ms": 60_000})
    message = (await client.get(f"{emails}/receive")).json()
    assert message["result_ms"] == 60_000
    return {"id": message["id"], "token": message["token"]}


async def outcome(client, message, wait_ms=0):
    return await client.get(f"/queues/emails/messages/{message['id']}/outcome?wait_ms={wait_ms}")


@everywhere
async def test_a_result_is_told_to_who_awaits_it(client, emails, held):
    awaited = asyncio.create_task(outcome(client, held, wait_ms=10_000))
    settled = await client.post(f"{emails}/ack", json={**held, "result": {"sent": [1, None]}})
    assert settled.json()["state"] == "completed"

    response = await awaited
    assert response.status_code == 200
    assert response.json() == {
        "id": held["id"], "state": "completed", "attempts": 1, "result": {"sent": [1, None]}
    }  # fmt: skip


async def test_a_result_is_asked_for_in_the_query_too(client, emails):
    sent = (await client.post(f"{emails}/enqueue?result_ms=1000", content=b"1")).json()
    await client.get(f"{emails}/receive")
    await client.put(f"/messages/{sent['id']}/complete")

    assert (await outcome(client, sent)).json()["result"] is None


async def test_progress_is_seen_by_who_asks_and_by_the_next_holder(client, emails, held):
    told = await client.post(f"{emails}/progress", json={**held, "progress": {"percent": 40}})
    assert told.json()["state"] == "leased"
    assert (await outcome(client, held)).json() == {
        "id": held["id"], "state": "leased", "attempts": 1, "progress": {"percent": 40}
    }  # fmt: skip

    await client.post(f"{emails}/release", json=held)
    assert (await client.get(f"{emails}/receive")).json()["progress"] == {"percent": 40}


async def test_many_are_completed_each_with_its_result(client, emails):
    for _ in range(2):
        await client.post(f"{emails}/messages", json={"payload": 1, "result_ms": 1_000})
    messages = (await client.post(f"{emails}/poll?batch=2")).json()["messages"]
    items = [{"id": m["id"], "token": m["token"], "result": n} for n, m in enumerate(messages)]

    await client.post(f"{emails}/ack", json=items)

    assert [(await outcome(client, message)).json()["result"] for message in messages] == [0, 1]


async def test_a_dead_letter_is_told_with_its_error(client, emails, held):
    await client.post(f"{emails}/fail", json={**held, "error": "no such address"})
    told = (await outcome(client, held, wait_ms=10_000)).json()
    assert (told["state"], told["error"]) == ("failed", "no such address")


async def test_a_result_is_kept_no_longer_than_asked(client, emails, held, clock):
    await client.post(f"{emails}/ack", json={**held, "result": 1})
    clock.advance(60_000)
    refused(await outcome(client, held), 404, "message_not_found")


async def test_what_is_no_outcome_is_refused(client, emails, held):
    refused(await outcome(client, {"id": "nonsense"}), 400, "invalid_input")
    refused(await outcome(client, held, wait_ms=-1), 400, "invalid_input")
    refused(await outcome(client, held, wait_ms=10_000_000), 400, "invalid_input")
    refused(await client.post(f"{emails}/progress", json=held), 400, "invalid_input")
    large = {**held, "progress": "x" * 5_000}
    refused(await client.post(f"{emails}/progress", json=large), 413, "payload_too_large")
    large = {**held, "result": "x" * 70_000}
    refused(await client.post(f"{emails}/ack", json=large), 413, "payload_too_large")
    refused(
        await client.post(f"{emails}/messages", json={"payload": 1, "result_ms": 0}), 400, "invalid_input"
    )
