"""The journal and the messages of a queue as Arrow: the same as they are told in JSON, in columns."""

import json
import sys
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import hq
from hq.tables import events, messages
from tests.http.shapes import refused
from tests.http.ways import everywhere

ARROW = {"Accept": "application/vnd.apache.arrow.stream"}


async def table(client, path, **query):
    """What is there, and how far it reaches."""
    response = await client.get(path, params=query, headers=ARROW)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == ARROW["Accept"]
    with pa.ipc.open_stream(response.content) as stream:
        assert stream.schema.metadata == {b"hq_tables": b"1"}
        return stream.read_all().replace_schema_metadata(None), int(response.headers["hq-reached"])


async def lines(client, path, **query):
    response = await client.get(path, params=query)
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.content.splitlines()]


@pytest.fixture
async def busy(client, emails, clock):
    """Two queues and a little of everything, over some time."""
    await client.post("/queues?name=other")
    options = {
        "headers": {"trace": "1", "b": ""},
        "priority": 7,
        "group": "g",
        "dedup_key": "k",
        "ttl_ms": 60_000,
    }
    await client.post(f"{emails}/messages", json=[{"payload": {"n": 1}, **options}, {"payload": "plain"}])
    await client.post("/queues/other/enqueue", content=b"\xff\x00")
    clock.advance(5)
    first = (await client.get(f"{emails}/receive?holder=me")).json()
    await client.post(f"{emails}/nack", json={"id": first["id"], "token": first["token"], "error": "no"})
    second = (await client.get(f"{emails}/receive")).json()
    await client.post(f"{emails}/fail", json={"id": second["id"], "token": second["token"], "error": "bad"})
    await client.post(f"{emails}/pause?reason=lunch")
    await client.put(emails, json={"max_attempts": 3})
    return first, second


@everywhere
async def test_the_journal_in_columns_has_every_event_in_order(client, busy):
    found, reached = await table(client, "/journal")
    told = await lines(client, "/journal")

    assert found.schema == events.SCHEMA
    names = {1: "emails", 2: "other"}
    rows = found.to_pylist()
    assert [(row["position"], row["queue"], row["sequence"], row["event"]) for row in rows] == [
        (event["position"], names[event["queue"]], event["sequence"], event["kind"]) for event in told
    ]
    assert [row["at"] for row in rows] == [
        datetime.fromtimestamp(event["at"] / 1_000, tz=UTC) for event in told
    ]
    assert reached == rows[-1]["position"]


async def test_a_column_says_what_the_event_says(client, busy, clock):
    first, second = busy
    found, _ = await table(client, "/journal", queue="emails")
    claimed, enqueued, plain, received, retried, _, failed, paused, configured = found.to_pylist()
    now = datetime.fromtimestamp(clock.now / 1_000, tz=UTC)

    assert enqueued["message_id"] == first["id"]
    assert enqueued["payload"] == b'{"n":1}'
    assert enqueued["headers"] == [("trace", "1"), ("b", "")]
    said = [enqueued[name] for name in ("priority", "group", "dedup_key", "content_type")]
    assert said == [7, "g", "k", "application/json"]
    assert (enqueued["expires_at"] - enqueued["at"]).total_seconds() == 60
    assert (plain["headers"], plain["group"], plain["priority"]) == (None, None, None)
    assert (plain["message_id"], plain["payload"]) == (second["id"], b'"plain"')
    assert (received["holder"], received["attempts"], received["receives"]) == ("me", 1, 1)
    assert received["lease_expires_at"] == now + timedelta(seconds=30)
    assert (retried["error"], retried["message_id"]) == ("no", first["id"])
    assert retried["available_at"] > now
    assert (failed["reason"], failed["error"], failed["was"]) == ("failed", "bad", "leased")
    assert (paused["reason"], paused["message_id"]) == ("lunch", None)
    assert json.loads(configured["detail"])["settings"]["max_attempts"] == 3
    assert json.loads(claimed["detail"]) == {"epoch": 1}
    assert [row["detail"] for row in (enqueued, received, retried, failed)] == [None] * 4


async def test_no_column_proves_a_lease(client, busy):
    found, _ = await table(client, "/journal")
    assert not [name for name in found.column_names if "token" in name]
    assert busy[0]["token"] not in str(found.to_pylist())


async def test_columns_are_chosen_and_come_in_the_order_asked_for(client, busy):
    whole, _ = await table(client, "/journal")
    some, _ = await table(client, "/journal", columns="event,position")
    assert some == whole.select(["event", "position"])
    answer = await client.get("/journal?columns=event,colour", headers=ARROW)
    assert "'colour'" in refused(answer, 400, "invalid_input")
    refused(await client.get("/journal?columns=event,event", headers=ARROW), 400, "invalid_input")


async def test_a_range_is_read_page_by_page(client, busy):
    whole, end = await table(client, "/journal")
    pages, reached = [], 0
    while reached < end:
        page, reached = await table(client, "/journal", after=reached, upto=end, limit=1)
        pages.append(page)
    assert len(pages) > 5
    assert pa.concat_tables(pages) == whole
    assert (await table(client, "/journal", after=end)) == (whole.slice(0, 0), end)
    assert (await table(client, "/journal", upto=0))[0] == whole.slice(0, 0)


@everywhere
async def test_messages_in_columns_are_those_that_wait_or_are_leased(client, busy, clock):
    first, _ = busy
    found, _ = await table(client, "/queues/emails/export")
    [row] = found.to_pylist()

    assert found.schema == messages.SCHEMA
    assert row["message_id"] == first["id"]
    assert (row["state"], row["attempts"], row["receives"], row["queue"]) == ("delayed", 1, 1, "emails")
    assert (row["payload"], row["headers"]) == (b'{"n":1}', [("trace", "1"), ("b", "")])
    assert (row["failed_at"], row["lease_expires_at"], row["holder"]) == (None, None, "me")


async def test_dead_letters_in_columns_say_why(client, busy, clock):
    found, _ = await table(client, "/queues/emails/export", table="dead_letters")
    [row] = found.to_pylist()
    assert (row["message_id"], row["state"]) == (busy[1]["id"], "failed")
    assert (row["reason"], row["error"]) == ("failed", "bad")
    assert row["failed_at"] == datetime.fromtimestamp(clock.now / 1_000, tz=UTC)


@everywhere
async def test_messages_as_lines_are_as_one_looks_at_them(client, emails):
    await client.post(f"{emails}/messages", json=[{"payload": n} for n in range(3)])
    shown = (await client.get(f"{emails}/messages")).json()["messages"]
    assert await lines(client, f"{emails}/export") == shown


@pytest.mark.parametrize("limit", [1, 150, 10_000])
async def test_an_export_goes_on_where_it_stopped(client, emails, limit):
    for _ in range(3):
        await client.post(f"{emails}/messages", json=[{"payload": 0}] * 100)
    end = (await client.get(f"{emails}/stats")).json()["sequence"]
    found, reached = [], 0
    while reached < end:
        page, reached = await table(client, f"{emails}/export", after=reached, upto=end, limit=limit)
        found += page.column("sequence").to_pylist()
    assert found == list(range(2, 302))

    part, _ = await table(client, f"{emails}/export", after=100, upto=120)
    assert part.column("sequence").to_pylist() == list(range(101, 121))


@pytest.mark.parametrize(
    "query", ["table=none", "limit=0", "limit=10001", "after=-1", "columns=queue", "x=1"]
)
async def test_an_export_that_makes_no_sense_is_refused(client, emails, query):
    refused(await client.get(f"{emails}/export?{query}"), 400, "invalid_input")
    refused(await client.get("/queues/none/export"), 404, "queue_not_found")


async def test_who_does_not_ask_for_arrow_gets_lines(client, busy):
    for accepted in ("*/*", "application/json", f"{ARROW['Accept']};q=0, */*"):
        response = await client.get("/journal", headers={"Accept": accepted})
        assert response.headers["content-type"] == "application/x-ndjson"
    response = await client.get("/journal", headers={"Accept": f"{ARROW['Accept']};q=0.5, text/plain"})
    assert response.headers["content-type"] == ARROW["Accept"]


async def test_a_server_without_pyarrow_says_what_to_install(client, busy, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("hq.tables.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    for path in ("/journal", "/queues/emails/export"):
        assert "pyarrow" in refused(await client.get(path, headers=ARROW), 406, "not_acceptable")
        assert await lines(client, path)


@pytest.mark.parametrize("limits", [hq.Limits(journal_ms=1, checkpoint_events=5)])
async def test_a_range_that_is_pruned_is_told_and_not_skipped(client, emails, clock, limits, until):
    for _ in range(20):
        await client.post(f"{emails}/messages", json={"payload": 0})

    async def pruned():
        clock.advance(60_000)
        return (await client.get("/journal/bounds")).json()["pruned"] > 2

    await until(pruned)
    end = (await client.get("/journal/bounds")).json()["last"]
    for after in (0, 1):
        refused(await client.get(f"/journal?after={after}&upto={end}", headers=ARROW), 410, "journal_pruned")
    found, reached = await table(client, "/journal")
    assert found.num_rows > 0
    assert reached == end
