"""The journal over HTTP."""

import json

import pytest

from tests.http.shapes import refused
from tests.http.ways import everywhere


async def read(client, query=""):
    response = await client.get(f"/journal{query}")
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    lines = response.content.split(b"\n")
    assert lines.pop() == b""
    return [json.loads(line) for line in lines], int(response.headers["hq-reached"])


@pytest.fixture
async def busy(client, emails):
    """Two queues and a little of everything."""
    await client.post("/queues?name=other")
    sent = (await client.post(f"{emails}/enqueue", content=b"\xff", params={"group": "g"})).json()
    await client.post("/queues/other/messages", json={"payload": 1})
    message = (await client.get(f"{emails}/receive?holder=me")).json()
    await client.put(emails, json={"max_attempts": 3})
    await client.put(f"/messages/{sent['id']}/complete")
    return message


@everywhere
async def test_the_journal_has_every_event_in_order(client, busy, clock):
    events, reached = await read(client)

    assert [(event["queue"], event["kind"]) for event in events] == [
        (1, "claimed"),
        (1, "enqueued"),
        (2, "claimed"),
        (2, "enqueued"),
        (1, "received"),
        (1, "configured"),
        (1, "completed"),
    ]
    positions = [event["position"] for event in events]
    assert positions == sorted(positions)
    assert positions[-1] == reached
    enqueued = events[1]
    assert (enqueued["payload"], enqueued["options"]["group"]) == ({"base64": "/w=="}, "g")
    assert enqueued["at"] == clock.now


async def test_nothing_in_the_journal_proves_a_lease(client, busy):
    text = (await client.get("/journal")).text
    assert "token" not in text
    assert busy["token"] not in text


async def test_the_journal_goes_on_where_a_reader_stopped(client, busy):
    whole, end = await read(client)
    found, reached = [], 0
    while reached < end:
        events, reached = await read(client, f"?after={reached}&limit=1")
        found += events
    assert found == whole
    assert await read(client, f"?after={end}") == ([], end)


async def test_the_journal_of_one_queue_goes_on_past_the_others(client, busy):
    events, reached = await read(client, "?queue=other")
    assert {event["queue"] for event in events} == {2}
    assert reached == (await read(client))[1]


@everywhere
async def test_the_journal_says_which_positions_it_has(client, busy):
    _, reached = await read(client)
    assert (await client.get("/journal/bounds")).json() == {
        "first": 1,
        "last": reached,
        "incarnation": 0,
        "pruned": 0,
        "archived": 0,
    }


async def test_an_empty_journal_has_no_positions(client):
    assert await read(client) == ([], 0)
    assert (await client.get("/journal/bounds")).json() == {
        "first": 0,
        "last": 0,
        "incarnation": 0,
        "pruned": 0,
        "archived": 0,
    }


async def test_a_range_of_the_journal_ends_where_it_says(client, busy):
    whole, _ = await read(client)
    events, reached = await read(client, "?after=1&upto=3")
    assert events == [event for event in whole if event["position"] in {2, 3}]
    assert reached == 3


async def test_the_journal_says_how_far_so_many_events_reach(client, emails):
    for count in (1, 3, 2):
        await client.post(f"{emails}/messages", json=[{"payload": 0}] * count)

    async def reach(after, events):
        return (await client.get(f"/journal/bounds?after={after}&events={events}")).json()["reach"]

    # Claimed and the first message, three, two; a single entry may have more than was asked for.
    ends = [await reach(0, 1), await reach(0, 4), await reach(0, 5), await reach(0, 1_000)]
    assert ends == [1, 2, 3, 4]
    assert [await reach(2, 1), await reach(2, 4), await reach(2, 5), await reach(4, 9)] == [3, 3, 4, 4]
    refused(await client.get("/journal/bounds?events=0"), 400, "invalid_input")


@pytest.mark.parametrize(
    "query",
    [
        "upto=-1",
        "columns=queue",
        "after=-1",
        "after=x",
        "limit=0",
        "limit=10001",
        "unknown=1",
        "after=99999999999999999999",
    ],
)
async def test_a_question_that_makes_no_sense_is_refused(client, query):
    refused(await client.get(f"/journal?{query}"), 400, "invalid_input")
    refused(await client.get("/journal?queue=none"), 404, "queue_not_found")
    refused(await client.get("/journal/bounds?x=1"), 400, "invalid_input")


@everywhere
async def test_a_lake_says_up_to_where_it_has_the_journal(client, busy):
    bounds = (await client.get("/journal/bounds?after=0&upto=2")).json()
    assert bounds["count"] == 2
    said = {"to": 3, "incarnation": bounds["incarnation"], "manifest": "ab" * 32}

    for to in (3, 2):
        answer = await client.put("/journal/archived", json={**said, "to": to})
        assert (answer.status_code, answer.json()) == (200, {"archived": 3})
    assert (await client.get("/journal/bounds")).json()["archived"] == 3
    beyond = await client.put("/journal/archived", json={**said, "to": bounds["last"] + 1})
    assert "the journal ends at position" in refused(beyond, 400, "invalid_input")
    other = await client.put("/journal/archived", json={**said, "incarnation": bounds["incarnation"] + 1})
    assert "another store" in refused(other, 400, "invalid_input")
    refused(await client.get("/journal/bounds?after=3&upto=2"), 400, "invalid_input")
