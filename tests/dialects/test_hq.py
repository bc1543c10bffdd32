"""The first seed's contract (ckampfe/hq) to the letter: its cases H1 to H16, and its faults put right."""

import json
import re
import uuid

import pytest

from tests.dialects.conftest import WAYS

DIALECT = "hq"
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}")

everywhere = pytest.mark.parametrize("client", WAYS, indirect=True)
# With `everywhere`, the way is said by the client.
once = pytest.mark.parametrize("way", ["root"])


def silent(response):
    assert (response.status_code, response.content) == (200, b""), response.text


def in_text(response, status):
    assert (response.status_code, response.headers["content-type"]) == (status, "text/plain; charset=utf-8")
    assert response.text
    return response.text


async def create(client, name="myqueue", max_attempts=5, seconds=30):
    params = {"name": name, "max_attempts": max_attempts, "visibility_timeout_seconds": seconds}
    return await client.post("/queues", params=params)


async def got(client, path="/queues/myqueue"):
    response = await client.get(path)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    return response.json()


async def enqueue(client, body=b'{"a":1, "b":2}'):
    response = await client.post("/queues/myqueue/enqueue", content=body)
    assert response.status_code == 200, response.text
    assert response.json().keys() == {"message_id"}
    return response.json()["message_id"]


async def receive(client):
    return await got(client, "/queues/myqueue/receive")


@pytest.fixture
async def myqueue(client):
    silent(await create(client))


@everywhere
@once
async def test_a_queue_is_made_listed_and_got(client, clock):  # H1, H2, H5
    silent(await create(client))
    [listed] = await got(client, "/queues")
    assert list(listed) == [
        "name", "max_attempts", "visibility_timeout_seconds", "inserted_at", "updated_at",
    ]  # fmt: skip
    assert (listed["name"], listed["max_attempts"], listed["visibility_timeout_seconds"]) == (
        "myqueue",
        5,
        30,
    )
    assert TIMESTAMP.fullmatch(listed["inserted_at"])
    assert listed["updated_at"] == listed["inserted_at"] == "1970-01-01 00:16:40.000"
    assert await got(client) == listed


async def test_of_no_queues_there_is_an_empty_list(client):  # H3
    assert await got(client, "/queues") == []


async def test_queues_are_listed_by_name(client):
    for name in "cab":
        silent(await create(client, name))
    assert [queue["name"] for queue in await got(client, "/queues")] == ["a", "b", "c"]


async def test_an_unknown_queue_is_null(client):  # H4
    assert await got(client, "/queues/nothing") is None


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?max_attempts=6", (6, 30)),  # H6
        ("?visibility_timeout_seconds=10", (5, 10)),  # H7
        ("", (5, 30)),  # H8
        # There it broke down.
        ("?max_attempts=6&visibility_timeout_seconds=10", (6, 10)),
        ("?other=1", (5, 30)),
    ],
)
async def test_a_queue_is_updated(client, myqueue, clock, query, expected):
    inserted_at = (await got(client))["inserted_at"]
    clock.advance(1_500)
    silent(await client.put(f"/queues/myqueue{query}"))
    shown = await got(client)
    assert (shown["max_attempts"], shown["visibility_timeout_seconds"]) == expected
    assert shown["inserted_at"] == inserted_at
    assert shown["updated_at"] == ("1970-01-01 00:16:41.500" if expected != (5, 30) else inserted_at)


async def test_updating_an_unknown_queue_changes_nothing(client):
    silent(await client.put("/queues/nothing?max_attempts=6"))
    assert await got(client, "/queues") == []


async def test_deleting_an_unknown_queue_succeeds(client):  # H9
    silent(await client.delete("/queues/nothing"))
    assert await got(client, "/queues") == []


async def test_a_queue_is_deleted_with_its_messages(client, myqueue):  # H10
    message_id = await enqueue(client)
    await receive(client)
    silent(await client.delete("/queues/myqueue"))
    assert await got(client, "/queues") == []
    silent(await client.put(f"/messages/{message_id}/complete"))
    silent(await create(client))
    assert await receive(client) is None


async def test_nothing_is_received_of_an_empty_or_unknown_queue(client, myqueue):  # H12
    assert await receive(client) is None
    assert await got(client, "/queues/nothing/receive") is None


@everywhere
@once
async def test_a_message_is_received(client, clock):  # H11, H13
    silent(await create(client))
    message_id = await enqueue(client)
    assert str(uuid.UUID(message_id)) == message_id
    received = await receive(client)
    assert received == {"id": message_id, "args": {"a": 1, "b": 2}, "queue": "myqueue", "attempts": 1}
    assert list(received) == ["id", "args", "queue", "attempts"]


@pytest.mark.parametrize("verb", ["complete", "fail"])  # H14, H15
async def test_a_message_that_is_completed_or_failed_does_not_come_again(client, myqueue, clock, verb):
    message_id = await enqueue(client)
    await receive(client)
    for _ in range(2):
        silent(await client.put(f"/messages/{message_id}/{verb}"))
    clock.advance(3_600_000)
    assert await receive(client) is None


async def test_a_message_is_received_as_often_as_its_queue_says(client, clock):  # H16
    silent(await create(client, max_attempts=2, seconds=1))
    message_id = await enqueue(client)
    for attempts in (1, 2):
        received = await receive(client)
        assert (received["id"], received["attempts"]) == (message_id, attempts)
        assert await receive(client) is None
        clock.advance(3_000)
    assert await receive(client) is None


async def test_settling_what_is_not_under_way_changes_nothing(client, myqueue, clock):
    message_id = await enqueue(client)
    for unknown in (message_id, str(uuid.uuid4()), "7aab413c-d164-468e-ab3b-14a4ee1ece3d"):
        for verb in ("complete", "fail"):
            silent(await client.put(f"/messages/{unknown}/{verb}"))
    assert (await receive(client))["attempts"] == 1
    clock.advance(30_000)
    silent(await client.put(f"/messages/{message_id}/complete"))
    assert (await receive(client))["attempts"] == 2


async def test_an_id_that_is_no_uuid_is_refused(client):
    for verb in ("complete", "fail"):
        in_text(await client.put(f"/messages/1/{verb}"), 400)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"b": {"d":1,"c":2}, "a": [ ]}', '{"a":[],"b":{"c":2,"d":1}}'),
        (b'{"a":1,"a":2}', '{"a":2}'),
        (b'"x"', '"x"'),
        (b" 1 ", "1"),
        (b"null", "null"),
        (b"[1.5,true]", "[1.5,true]"),
        ('"ä"'.encode(), '"ä"'),
    ],
)
async def test_any_json_is_taken_and_told_with_sorted_names(client, myqueue, body, told):
    message_id = await enqueue(client, body)
    response = await client.get("/queues/myqueue/receive")
    assert response.text == f'{{"id":"{message_id}","args":{told},"queue":"myqueue","attempts":1}}'


async def test_the_content_type_is_not_looked_at(client, myqueue):
    headers = {"Content-Type": "text/xml"}
    assert (await client.post("/queues/myqueue/enqueue", content=b"1", headers=headers)).status_code == 200


@pytest.mark.parametrize(
    "body", [b"", b"{", b"x", b'"\xff"', b"1e999", b"[" * 200 + b"]" * 200, rb'"\ud800"', b"1 2"]
)
async def test_a_body_that_is_no_json_is_refused(client, myqueue, body):  # where it answered 500, or kept it
    in_text(await client.post("/queues/myqueue/enqueue", content=body), 400)
    assert await receive(client) is None


async def test_a_message_for_an_unknown_queue_is_refused(client):  # where it answered 500
    in_text(await client.post("/queues/nothing/enqueue", content=b"1"), 404)


async def test_a_large_body_is_refused(client, myqueue):
    most = 2 << 20
    await enqueue(client, json.dumps("x" * (most - 2)).encode())
    in_text(await client.post("/queues/myqueue/enqueue", content=json.dumps("x" * most).encode()), 413)


@pytest.mark.parametrize(
    ("query", "status", "told"),
    [
        ("name=a&max_attempts=5", 400, "visibility_timeout_seconds"),
        ("name=a&visibility_timeout_seconds=5", 400, "max_attempts"),
        ("max_attempts=5&visibility_timeout_seconds=5", 400, "name"),
        ("name=a&max_attempts=x&visibility_timeout_seconds=5", 400, "max_attempts"),
        ("name=a&max_attempts=0&visibility_timeout_seconds=0", 422, "max_attempts"),
        ("name=a&max_attempts=5&visibility_timeout_seconds=0", 422, "visibility_timeout_seconds"),
        ("name=a&max_attempts=5&visibility_timeout_seconds=86401", 422, "visibility_timeout_seconds"),
        ("name=a&max_attempts=1000001&visibility_timeout_seconds=5", 422, "max_attempts"),
        ("name=a%20b&max_attempts=5&visibility_timeout_seconds=5", 422, "name"),
    ],
)
async def test_what_is_wrong_with_a_new_queue_is_named(client, query, status, told):
    assert told in in_text(await client.post(f"/queues?{query}"), status)
    assert await got(client, "/queues") == []


@pytest.mark.parametrize(
    ("query", "status", "told"),
    [
        ("max_attempts=0&visibility_timeout_seconds=0", 422, "max_attempts"),
        ("visibility_timeout_seconds=-1", 422, "visibility_timeout_seconds"),
        ("max_attempts=x", 400, "max_attempts"),
    ],
)
@pytest.mark.parametrize("queue", ["myqueue", "nothing"])
async def test_what_is_wrong_with_a_change_is_named(client, myqueue, queue, query, status, told):
    assert told in in_text(await client.put(f"/queues/{queue}?{query}"), status)


async def test_a_name_is_given_once(client, myqueue):
    in_text(await create(client), 409)
    in_text(await create(client, max_attempts=6), 409)
    assert (await got(client))["max_attempts"] == 5


@everywhere
@once
async def test_other_addresses_and_methods_are_refused(client):
    for path in ("/", "/nothing", "/queues/", "/queues/a/b", "/queues/a/enqueue/", "/readyz"):
        in_text(await client.get(path), 404)
    for method, path in (("DELETE", "/queues"), ("GET", "/queues/a/enqueue"), ("POST", "/web")):
        in_text(await client.request(method, path), 405)


async def test_asking_for_the_head_receives_nothing(client, myqueue):  # where it took a lock
    await enqueue(client)
    assert (await client.head("/queues/myqueue/receive")).status_code == 405
    assert (await receive(client))["attempts"] == 1


@everywhere
@once
async def test_the_page_shows_the_latest_messages_and_loads_nothing_from_elsewhere(client, clock):
    assert "There is none yet" in (await client.get("/web")).text
    silent(await create(client))
    ids = [await enqueue(client, b'"<script>%d"' % number) for number in range(12)]
    clock.advance(1_000)
    received = await receive(client)
    response = await client.get("/web")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert not re.search(r"<script|<link|<img|<iframe|src=|href=|@import|url\(|//", response.text)
    shown = re.findall(r"<tr><td><code>([0-9a-f-]{36})</code></td><td>(\w+)</td>", response.text)
    # Of the twelve, all but the last nine; before them the one that was received.
    assert [one for one, _ in shown] == [received["id"], *reversed(ids[3:])]
    assert "&lt;script&gt;0" in response.text
    assert "received" in response.text
    assert "1970-01-01 00:16:41.000" in response.text
