"""Operating a queue: purge, pause, resume, compact, and bringing dead letters back."""

import pytest

from tests.http.shapes import refused
from tests.http.ways import everywhere


async def enqueue(client, count, **options):
    items = [{"payload": n, **options} for n in range(count)]
    assert (await client.post("/queues/emails/messages", json=items)).status_code == 200


async def fail(client, count, **options):
    """So many dead letters."""
    await enqueue(client, count, **options)
    received = (await client.post(f"/queues/emails/poll?batch={count}")).json()["messages"]
    held = [{"id": one["id"], "token": one["token"]} for one in received]
    await client.post("/queues/emails/fail", json=held)


async def has(client, **counts):
    return counts.items() <= (await client.get("/queues/emails/stats")).json().items()


async def stats(client, *names):
    counts = (await client.get("/queues/emails/stats")).json()
    return tuple(counts[name] for name in names)


@everywhere
async def test_a_purge_takes_out_what_waits_or_is_leased(client, emails):
    await fail(client, 1)
    await enqueue(client, 3)
    await enqueue(client, 1, delay_ms=1_000)
    await client.get(f"{emails}/receive")

    response = await client.post(f"{emails}/purge")

    assert (response.status_code, response.json()) == (200, {"purged": 4})
    assert await stats(client, "ready", "delayed", "leased", "failed", "purged") == (0, 0, 0, 1, 4)
    assert (await client.post(f"{emails}/purge")).json() == {"purged": 0}


@everywhere
async def test_dead_letters_are_taken_out(client, emails):
    await fail(client, 2)
    await enqueue(client, 1)
    assert (await client.delete(f"{emails}/dlq")).json() == {"purged": 2}
    assert await stats(client, "ready", "failed", "purged") == (1, 0, 2)


@everywhere
async def test_a_paused_queue_takes_and_hands_nothing_out(client, emails):
    assert (await client.post(f"{emails}/pause?reason=maintenance")).json() == {"paused": True}
    await enqueue(client, 1)
    assert (await client.get(f"{emails}/receive")).json() is None
    assert await stats(client, "paused", "ready") == ("maintenance", 1)
    assert (await client.post(f"{emails}/resume")).json() == {"paused": False}
    assert (await client.get(f"{emails}/receive")).json()["payload"] == 0


async def test_a_paused_group_hands_nothing_out(client, emails):
    await enqueue(client, 1, group="a")
    await enqueue(client, 1, group="b")
    await client.post(f"{emails}/pause", params={"group": "a", "reason": "angry"})
    assert (await client.get(f"{emails}/receive")).json()["group"] == "b"
    assert (await client.get(f"{emails}/receive")).json() is None
    await client.post(f"{emails}/resume?group=a")
    assert (await client.get(f"{emails}/receive")).json()["group"] == "a"


@everywhere
async def test_a_store_is_compacted(client, emails):
    response = await client.post(f"{emails}/compact")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


@everywhere
async def test_dead_letters_are_brought_back_by_a_task(client, emails, until):
    await fail(client, 250)

    response = await client.post(f"{emails}/dlq/requeue")

    assert (response.status_code, response.json()) == (202, {"task": 1})
    await until(lambda: has(client, failed=0))
    assert await stats(client, "ready", "failed") == (250, 0)
    assert (await client.get(f"{emails}/tasks")).json() == []


async def test_only_some_dead_letters_are_brought_back(client, emails, until):
    await fail(client, 2, group="a")
    await fail(client, 1, group="b")
    await client.post(f"{emails}/dlq/requeue", json={"group": "b", "reason": "failed"})
    await until(lambda: has(client, ready=1))
    assert await stats(client, "ready", "failed") == (1, 2)


@everywhere
async def test_a_slow_task_shows_its_progress_and_can_be_cancelled(client, emails, until):
    await fail(client, 4)
    rate = {"limit": 1, "per_ms": 60_000, "burst": 1}
    task = (await client.post(f"{emails}/dlq/requeue", json={"rate": rate})).json()["task"]
    await until(lambda: has(client, ready=1))

    shown = (await client.get(f"{emails}/tasks/{task}")).json()
    assert {name: shown[name] for name in ("task", "kind", "scope", "done")} == {
        "task": task,
        "kind": "requeue",
        "scope": "failed",
        "done": 1,
    }
    assert 0 < shown["percent"] < 100
    assert (await client.get(f"{emails}/tasks")).json() == [shown]
    assert (await client.delete(f"{emails}/tasks/{task}")).json() == {"done": 1}
    refused(await client.get(f"{emails}/tasks/{task}"), 404, "task_not_found")
    refused(await client.delete(f"{emails}/tasks/{task}"), 404, "task_not_found")
    assert await stats(client, "ready", "failed") == (1, 3)


async def test_a_queue_runs_only_so_many_tasks(client, emails):
    await fail(client, 150)
    slowly = {"rate": {"limit": 1, "per_ms": 86_400_000}}
    for _ in range(100):
        assert (await client.post(f"{emails}/dlq/requeue", json=slowly)).status_code == 202
    refused(await client.post(f"{emails}/dlq/requeue", json=slowly), 429, "too_many_tasks")


@pytest.mark.parametrize(
    "body", [{"rate": 5}, {"rate": {"limit": 0}}, {"group": 5}, {"unknown": 1}, {"group": "g" * 129}, []]
)
async def test_a_task_that_makes_no_sense_is_refused(client, emails, body):
    refused(await client.post(f"{emails}/dlq/requeue", json=body), 400, "invalid_input")


@pytest.mark.parametrize("number", ["x", "-1", "1.5", "9" * 30, "%C2%B2"])
async def test_a_task_is_named_by_its_number(client, emails, number):
    refused(await client.get(f"{emails}/tasks/{number}"), 400, "invalid_input")
    refused(await client.delete(f"{emails}/tasks/{number}"), 400, "invalid_input")
    refused(await client.get(f"{emails}/tasks/17"), 404, "task_not_found")


@pytest.mark.parametrize(
    ("method", "route"),
    [
        ("POST", "purge"),
        ("POST", "pause"),
        ("POST", "pause?group=g"),
        ("POST", "resume"),
        ("POST", "compact"),
        ("DELETE", "dlq"),
        ("POST", "dlq/requeue"),
        ("GET", "tasks"),
        ("GET", "tasks/1"),
        ("DELETE", "tasks/1"),
    ],
)
async def test_a_queue_that_is_not_there_cannot_be_operated(client, method, route):
    refused(await client.request(method, f"/queues/none/{route}"), 404, "queue_not_found")


@pytest.mark.parametrize(
    ("method", "route"),
    [
        ("POST", "pause?unknown=1"),
        ("POST", "pause?reason=" + "x" * 5_000),
        ("POST", "pause?group=" + "g" * 129),
        ("POST", "resume?reason=x"),
        ("POST", "purge?x=1"),
        ("DELETE", "dlq?x=1"),
        ("POST", "compact?x=1"),
    ],
)
async def test_an_order_that_makes_no_sense_is_refused(client, emails, method, route):
    refused(await client.request(method, f"{emails}/{route}"), 400, "invalid_input")


async def test_labels_cannot_be_paused(client):
    await client.post("/queues?name=emails&groups=label")
    refused(await client.post("/queues/emails/pause?group=g"), 400, "invalid_input")
