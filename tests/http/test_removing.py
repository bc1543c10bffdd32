"""Deleting and requeueing by id, one or many; replacing and deleting by dedup key; tasks over many."""

import pytest

from tests.http.shapes import refused
from tests.http.test_operating import enqueue, fail, has, stats
from tests.http.ways import everywhere


async def ids(client, path):
    return [one["id"] for one in (await client.get(f"{path}?limit=100")).json()["messages"]]


@everywhere
async def test_one_message_or_many_are_deleted_by_id(client, emails):
    await enqueue(client, 3)
    first, *others = await ids(client, f"{emails}/messages")

    assert (await client.post(f"{emails}/delete", json={"id": first})).json()["state"] == "deleted"
    told = (await client.post(f"{emails}/delete", json=[{"id": one} for one in (first, *others)])).json()

    assert told["results"][0]["error"]["code"] == "message_not_found"
    assert [one["state"] for one in told["results"][1:]] == ["deleted"] * 2
    assert await stats(client, "ready", "deleted") == (0, 3)


@everywhere
async def test_one_dead_letter_or_many_are_brought_back(client, emails):
    await fail(client, 3)
    first, *others = await ids(client, f"{emails}/dlq")

    assert (await client.post(f"{emails}/requeue", json={"id": first})).json()["state"] == "ready"
    told = (await client.post(f"{emails}/requeue", json=[{"id": one} for one in (first, *others)])).json()

    assert told["results"][0]["error"]["code"] == "message_not_failed"
    assert await stats(client, "ready", "failed") == (3, 0)


async def test_a_message_is_settled_without_its_token_if_that_is_said(client, emails):
    await enqueue(client, 1)
    held = (await client.get(f"{emails}/receive")).json()
    told = await client.post(f"{emails}/nack", json={"id": held["id"], "by_id": True, "delay_ms": 0})
    assert told.json()["state"] == "ready"
    refused(await client.post(f"{emails}/ack", json={"id": held["id"], "by_id": True}), 409, "lease_not_held")


@everywhere
async def test_a_waiting_message_is_replaced_by_its_dedup_key(client, emails):
    await enqueue(client, 1, dedup_key="welcome")
    response = await client.put(f"{emails}/by-key?dedup_key=welcome", content=b'"new"')
    assert (response.status_code, response.json()["state"]) == (200, "ready")
    assert (await client.get(f"{emails}/receive")).json()["payload"] == "new"
    refused(await client.put(f"{emails}/by-key?dedup_key=welcome", content=b"1"), 409, "message_not_waiting")


@everywhere
async def test_a_message_is_deleted_by_its_dedup_key(client, emails):
    await enqueue(client, 1, dedup_key="welcome")
    assert (await client.delete(f"{emails}/by-key?dedup_key=welcome")).json()["state"] == "deleted"
    refused(await client.delete(f"{emails}/by-key?dedup_key=welcome"), 404, "message_not_found")
    refused(await client.delete(f"{emails}/by-key"), 400, "invalid_input")


async def test_what_waits_is_moved_to_another_queue(client, emails, until):
    await client.post("/queues", json={"name": "other"})
    await enqueue(client, 2)
    task = {"kind": "move", "scope": "live", "target": "other"}
    response = await client.post(f"{emails}/tasks", json=task)
    assert (response.status_code, response.json()) == (202, {"task": 1})
    await until(lambda: has(client, ready=0, moved=2))


async def test_dead_letters_are_deleted_at_a_rate(client, emails, until, clock):
    await fail(client, 3)
    rate = {"limit": 1, "per_ms": 1_000}
    await client.post(f"{emails}/tasks", json={"kind": "delete", "scope": "failed", "rate": rate})
    [running] = (await client.get(f"{emails}/tasks")).json()
    assert running["rate"] == rate | {"burst": 1}

    async def is_done():
        clock.advance(1_000)
        return await has(client, failed=0)

    await until(is_done)


@pytest.mark.parametrize(
    ("task", "status", "code"),
    [
        ({"kind": "burn", "scope": "live"}, 400, "invalid_input"),
        ({"kind": "move", "scope": "all"}, 400, "invalid_input"),
        ({"kind": "move", "scope": "live", "target": "nobody"}, 404, "queue_not_found"),
        ({"kind": "move", "scope": "live", "target": "emails"}, 400, "invalid_input"),
        ({"kind": "requeue", "scope": "live"}, 400, "invalid_input"),
    ],
)
async def test_a_task_that_makes_no_sense_is_refused(client, emails, task, status, code):
    refused(await client.post(f"{emails}/tasks", json=task), status, code)
