"""Sqew's HTTP/JSON API sketch on the native routes: each of its calls works.

Where the answer is hq's own, the test says so.
"""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.http.shapes import refused
from tests.http.ways import everywhere

Q = "/queues/q"


@pytest.fixture
async def queue(client):
    await client.post("/queues", json={"name": "dead"})
    new = {"name": "q", "dlq": "dead", "max_attempts": 2, "visibility_ms": 30_000}
    response = await client.post("/queues", json=new)
    assert response.status_code == 201, response.text
    return response.json()


async def enqueue(client, **message):
    response = await client.post(f"{Q}/messages", json=message)
    assert response.status_code == 201, response.text
    return response.json()["message_id"]


async def poll(client, query="", queue=Q):
    response = await client.post(f"{queue}/poll{query}")
    assert response.status_code == 200, response.text
    return response.json()["messages"]


def held(message, **said):
    return {"id": message["id"], "token": message["token"], **said}


async def test_a_queue_has_a_dead_letter_queue_attempts_and_a_lease(client, queue):
    settings = queue["settings"]
    said = settings["dead_letter_queue"], settings["max_attempts"], settings["lease_ms"]
    assert said == ("dead", 2, 30_000)


@everywhere
async def test_enqueue_poll_and_ack(client, queue, clock):
    message_id = await enqueue(client, payload={"to": "a"}, priority=1, delay_ms=0)

    [message] = await poll(client, "?batch=10")

    assert (message["id"], message["payload"]) == (message_id, {"to": "a"})
    assert message["lease_expires_at"] == clock.now + 30_000
    acked = await client.post(f"{Q}/ack", json=held(message))
    assert (acked.status_code, acked.json()["state"]) == (200, "completed")
    clock.advance(60_000)
    assert await poll(client) == []


async def test_messages_are_enqueued_and_acked_in_batches(client, queue):
    sent = await client.post(f"{Q}/messages", json=[{"payload": 1}, {"payload": 2}, {"payload": 3}])
    # A batch answers with 200: each item has a result of its own.
    assert sent.status_code == 200
    ids = [result["message_id"] for result in sent.json()["results"]]

    messages = await poll(client, "?batch=3")

    assert [message["id"] for message in messages] == ids
    acked = await client.post(f"{Q}/ack", json=[held(message) for message in messages])
    assert [result["state"] for result in acked.json()["results"]] == ["completed"] * 3


async def test_the_order_is_priority_then_time_then_id(client, queue):
    for payload, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5)):
        await enqueue(client, payload=payload, priority=priority)
    assert [message["payload"] for message in await poll(client, "?batch=9")] == ["b", "d", "a", "c"]


async def test_a_delayed_message_comes_when_it_is_time(client, queue, clock):
    await enqueue(client, payload=1, delay_ms=5_000)
    assert await poll(client) == []
    clock.advance(5_000)
    assert len(await poll(client)) == 1


async def test_an_idempotency_key_gives_the_original_message(client, queue):
    first = await enqueue(client, payload=1, idempotency_key="k")
    assert await enqueue(client, payload=2, idempotency_key="k") == first
    by_header = await client.post(f"{Q}/messages", json={"payload": 3}, headers={"Idempotency-Key": "k"})
    assert by_header.json()["message_id"] == first
    assert [message["payload"] for message in await poll(client, "?batch=9")] == [1]


async def test_a_token_fences_who_was_too_late(client, queue, clock):
    await enqueue(client, payload=1)
    [late] = await poll(client)
    clock.advance(30_000)
    [again] = await poll(client)
    assert (again["id"], again["attempts"]) == (late["id"], 2)
    refused(await client.post(f"{Q}/ack", json=held(late)), 409, "lease_not_held")
    refused(await client.post(f"{Q}/nack", json=held(late)), 409, "lease_not_held")
    assert (await client.post(f"{Q}/ack", json=held(again))).status_code == 200


async def test_nack_comes_again_after_its_delay_and_ends_in_the_dead_letter_queue(
    client, queue, clock, until
):
    message_id = await enqueue(client, payload=1)
    [message] = await poll(client)
    nacked = await client.post(f"{Q}/nack", json=held(message, delay_ms=1_000))
    assert (nacked.json()["state"], nacked.json()["until"]) == ("delayed", clock.now + 1_000)
    assert await poll(client) == []
    clock.advance(1_000)

    [message] = await poll(client)
    await client.post(f"{Q}/nack", json=held(message))

    async def moved():
        return await poll(client, "?lease_ms=0", queue="/queues/dead") != []

    await until(moved)
    [dead] = await poll(client, queue="/queues/dead")
    # A queue of its own: the message has a new id there, and keeps the old one.
    assert (dead["payload"], dead["origin_id"]) == (1, message_id)


async def test_without_a_delay_nack_backs_off(client, queue, clock):
    await enqueue(client, payload=1)
    [message] = await poll(client)
    nacked = await client.post(f"{Q}/nack", json=held(message))
    assert 0 < nacked.json()["until"] - clock.now <= 2_000


async def test_every_queue_has_dead_letters_if_it_names_no_queue_for_them(client, clock):
    await client.post("/queues", json={"name": "q", "max_attempts": 1})
    message_id = await enqueue(client, payload=1)
    [message] = await poll(client)
    await client.post(f"{Q}/nack", json=held(message))
    assert [dead["id"] for dead in (await client.get(f"{Q}/dlq")).json()["messages"]] == [message_id]


async def test_stats_count_what_is_ready_leased_and_dead(client, queue):
    await client.post(f"{Q}/messages", json=[{"payload": 1}, {"payload": 2}, {"payload": 3}])
    for message in await poll(client, "?batch=2"):
        failed = message
    await client.post(f"{Q}/fail", json=held(failed))
    stats = (await client.get(f"{Q}/stats")).json()
    assert (stats["ready"], stats["leased"], stats["failed"] + stats["moving"] + stats["moved"]) == (1, 1, 1)


@everywhere
async def test_health_readiness_and_metrics(client, queue):
    assert (await client.get("/healthz")).status_code == 200
    assert (await client.get("/readyz")).status_code == 200
    await poll(client)
    families = {family.name for family in text_string_to_metric_families((await client.get("/metrics")).text)}
    wanted = {"hq_http_requests", "hq_http_request_seconds", "hq_queue_messages", "hq_messages_retries"}
    assert wanted <= families


async def test_a_message_is_peeked_at_and_removed(client, queue):
    first, second = [await enqueue(client, payload=number) for number in (1, 2)]
    assert (await client.delete(f"{Q}/messages/{first}")).status_code == 200
    peeked = (await client.get(f"{Q}/peek?limit=5")).json()["messages"]
    assert [message["id"] for message in peeked] == [second]
    assert len(await poll(client, "?batch=5")) == 1


async def test_a_payload_of_more_than_512_kb_is_refused(client, queue):
    refused(await client.post(f"{Q}/messages", json={"payload": "x" * (512 << 10)}), 413, "payload_too_large")
