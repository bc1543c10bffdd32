"""The first seed's README (ckampfe/hq) on the native routes: each of its calls works.

Where the answer is hq's own, the test says so; decision 0017 says why. The seed's to the letter is a dialect.
"""

import pytest

from tests.http.shapes import refused
from tests.http.ways import everywhere

JSON = {"Content-type": "application/json"}


@pytest.fixture
async def myqueue(client):
    response = await client.post("/queues?name=myqueue&max_attempts=5&visibility_timeout_seconds=30")
    assert response.status_code == 201, response.text
    return response.json()


async def enqueue(client, body=b'{"a":1, "b":2}'):
    response = await client.post("/queues/myqueue/enqueue", content=body, headers=JSON)
    assert response.status_code == 200, response.text
    return response.json()["message_id"]


async def receive(client):
    response = await client.get("/queues/myqueue/receive")
    assert response.status_code == 200, response.text
    return response.json()


@everywhere
async def test_the_example_of_its_readme(client, myqueue):
    message_id = await enqueue(client)

    received = await receive(client)

    # Its `args` are hq's `payload`; beside it hq tells the token and the lease.
    said = {name: received[name] for name in ("id", "payload", "queue", "attempts")}
    assert said == {"id": message_id, "payload": {"a": 1, "b": 2}, "queue": "myqueue", "attempts": 1}


@pytest.mark.parametrize(("verb", "state"), [("complete", "completed"), ("fail", "failed")])
async def test_a_message_is_completed_or_failed_by_its_id(client, myqueue, clock, verb, state):
    message_id = await enqueue(client)
    await receive(client)

    settled = await client.put(f"/messages/{message_id}/{verb}")

    # It answers with nothing; hq tells what became of the message.
    assert (settled.status_code, settled.json()["state"]) == (200, state)
    clock.advance(3_600_000)
    assert await receive(client) is None


async def test_an_empty_queue_gives_null(client, myqueue):
    assert await receive(client) is None


async def test_the_metadata_of_a_queue(client, myqueue):
    shown = (await client.get("/queues/myqueue")).json()
    assert (shown["name"], shown["visibility_timeout_seconds"]) == ("myqueue", 30)
    # With all other settings, `max_attempts` is in `settings`.
    assert shown["settings"]["max_attempts"] == 5


async def test_a_list_of_all_queues(client):
    assert (await client.get("/queues")).json() == []
    for name in ("b", "a"):
        await client.post(f"/queues?name={name}&max_attempts=5&visibility_timeout_seconds=30")
    assert [queue["name"] for queue in (await client.get("/queues")).json()] == ["a", "b"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?max_attempts=6", (6, 30)),
        ("?visibility_timeout_seconds=10", (5, 10)),
        ("", (5, 30)),
        # It breaks down over both at once.
        ("?max_attempts=6&visibility_timeout_seconds=10", (6, 10)),
    ],
)
async def test_the_options_of_a_queue_are_updated(client, myqueue, query, expected):
    assert (await client.put(f"/queues/myqueue{query}")).status_code == 200
    shown = (await client.get("/queues/myqueue")).json()
    assert (shown["settings"]["max_attempts"], shown["visibility_timeout_seconds"]) == expected


async def test_a_queue_is_deleted_with_all_of_its_messages(client, myqueue):
    message_id = await enqueue(client)
    assert (await client.delete("/queues/myqueue")).status_code == 204
    assert (await client.get("/queues")).json() == []
    refused(await client.put(f"/messages/{message_id}/complete"), 404, "message_not_found")


async def test_a_message_that_is_not_completed_in_time_can_be_received_again(client, clock):
    await client.post("/queues?name=myqueue&max_attempts=2&visibility_timeout_seconds=1")
    message_id = await enqueue(client)
    for attempts in (1, 2):
        received = await receive(client)
        assert (received["id"], received["attempts"]) == (message_id, attempts)
        clock.advance(1_000)

    assert await receive(client) is None
    # There it stays, neither received nor failed; in hq it is failed, as its README says.
    assert [dead["id"] for dead in (await client.get("/queues/myqueue/dlq")).json()["messages"]] == [
        message_id
    ]


async def test_what_is_not_there_is_told(client, myqueue):
    """It answers null, or nothing at all, or breaks down."""
    for method, path in [
        ("GET", "/queues/none"),
        ("PUT", "/queues/none?max_attempts=6"),
        ("DELETE", "/queues/none"),
        ("GET", "/queues/none/receive"),
        ("POST", "/queues/none/enqueue"),
    ]:
        refused(await client.request(method, path), 404, "queue_not_found")


async def test_what_it_refuses_is_refused(client, myqueue):
    refused(await client.post("/queues?name=myqueue&max_attempts=6"), 409, "queue_exists")
    for query in ("max_attempts=0", "visibility_timeout_seconds=0", "max_attempts=many"):
        refused(await client.post(f"/queues?name=other&{query}"), 400, "invalid_input")
    refused(
        await client.post("/queues/myqueue/enqueue", content=b'{"a":', headers=JSON), 400, "invalid_input"
    )
    refused(await client.put("/messages/none/complete"), 400, "invalid_input")
