"""Creating, listing, showing, changing and deleting queues."""

import pytest

import hq
from tests.http.shapes import refused
from tests.http.ways import everywhere

DEFAULTS = {
    "max_attempts": 5,
    "lease_ms": 30_000,
    "retry": {
        "backoff": "exponential",
        "base_ms": 1_000,
        "factor": 2,
        "cap_ms": 3_600_000,
        "jitter_percent": 10,
    },
    "delay_ms": 0,
    "ttl_ms": None,
    "dedup_ms": 0,
    "dedup_scope": "queue",
    "groups": "ordered",
    "concurrency": None,
    "concurrency_per_key": None,
    "capacity": None,
    "enqueue_rate": None,
    "receive_rate": None,
    "max_payload_bytes": 524_288,
    "dead_letter_queue": None,
    "failed_ms": 1_209_600_000,
}
EVERYTHING = {
    "max_attempts": None,
    "lease_ms": 1_000,
    "retry": {"backoff": "linear", "base_ms": 1, "factor": 1, "cap_ms": 9, "jitter_percent": 0},
    "delay_ms": 5,
    "ttl_ms": 60_000,
    "dedup_ms": 7,
    "dedup_scope": "group",
    "groups": "fifo",
    "concurrency": 3,
    "concurrency_per_key": 2,
    "capacity": 10,
    "enqueue_rate": {"limit": 5, "per_ms": 1_000, "burst": 1},
    "receive_rate": {"limit": 6, "per_ms": 500, "burst": 2},
    "max_payload_bytes": 100,
    "dead_letter_queue": "dead",
    "failed_ms": 0,
}
BAD_NAMES = [
    "",
    ".",
    "a..b",
    ".a",
    "a.",
    "-rf",
    "a b",
    "a/b",
    "../etc",
    "é",
    "a\x00b",
    "a\n",
    "'; DROP",
    "x" * 129,
]


def settings_of(response):
    assert response.status_code in {200, 201}, response.text
    return response.json()["settings"]


@everywhere
async def test_a_queue_is_made_by_json(client):
    response = await client.post("/queues", json={"name": "emails"})

    assert response.status_code == 201
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    assert response.json() == {
        "name": "emails",
        "number": 1,
        "settings": DEFAULTS,
        "visibility_timeout_seconds": 30.0,
    }


@everywhere
async def test_a_queue_is_made_by_the_query(client):
    query = {"name": "emails", "max_attempts": 2, "visibility_timeout_seconds": 7}

    response = await client.post("/queues", params=query)

    assert response.status_code == 201
    assert settings_of(response) == {**DEFAULTS, "max_attempts": 2, "lease_ms": 7_000}
    assert response.json()["visibility_timeout_seconds"] == 7


async def test_every_setting_can_be_said(client):
    response = await client.post("/queues", json={"name": "emails", **EVERYTHING})
    assert settings_of(response) == EVERYTHING
    assert settings_of(await client.get("/queues/emails")) == EVERYTHING


async def test_the_names_of_the_seeds_are_understood(client):
    response = await client.post("/queues", json={"name": "a", "visibility_ms": 1_500, "dlq": "dead"})
    assert settings_of(response) == {**DEFAULTS, "lease_ms": 1_500, "dead_letter_queue": "dead"}
    response = await client.post("/queues", params={"name": "b", "visibility_ms": 1_500, "dlq": "dead"})
    assert settings_of(response)["dead_letter_queue"] == "dead"


@pytest.mark.parametrize(
    "twice",
    [
        {"visibility_ms": 1, "lease_ms": 1},
        {"visibility_timeout_seconds": 1, "lease_ms": 1_000},
        {"visibility_timeout_seconds": 1, "visibility_ms": 1_000},
        {"dlq": "a", "dead_letter_queue": "a"},
    ],
)
async def test_a_setting_is_said_by_one_name(client, twice):
    refused(await client.post("/queues", json={"name": "q", **twice}), 400, "invalid_input")


async def test_a_queue_that_is_the_same_is_found(client):
    assert (await client.post("/queues", json={"name": "emails", "lease_ms": 5})).status_code == 201
    assert (await client.post("/queues?name=emails&lease_ms=5")).status_code == 200


async def test_a_queue_that_differs_is_refused(client):
    await client.post("/queues", json={"name": "emails"})
    refused(await client.post("/queues?name=emails&max_attempts=6"), 409, "queue_exists")


@pytest.mark.parametrize("name", BAD_NAMES)
async def test_a_bad_name_is_refused(client, name):
    refused(await client.post("/queues", json={"name": name}), 400, "invalid_input")
    refused(await client.post("/queues", params={"name": name}), 400, "invalid_input")


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        None,
        "emails",
        {"name": 5},
        {"name": None},
        {"name": "q", "unknown": 1},
        {"name": "q", "max_attempts": 0},
        {"name": "q", "lease_ms": None},
        {"name": "q", "visibility_timeout_seconds": 0},
        {"name": "q", "groups": "other"},
        {"name": "q", "dedup_scope": "other"},
        {"name": "q", "retry": {"backoff": "other"}},
        {"name": "q", "retry": {"base": 1}},
        {"name": "q", "enqueue_rate": {}},
        {"name": "q", "enqueue_rate": {"limit": 0}},
        {"name": "q", "dead_letter_queue": "q"},
        {"name": "q", "dead_letter_queue": "a b"},
    ],
)
async def test_settings_that_make_no_sense_are_refused(client, body):
    refused(await client.post("/queues", json=body), 400, "invalid_input")
    assert (await client.get("/queues")).json() == []


@pytest.mark.parametrize(
    "query", ["", "lease_ms=1", "name=q&unknown=1", "name=q&lease_ms=x", "name=q&name=q", "name=q&retry=1"]
)
async def test_a_query_that_makes_no_sense_is_refused(client, query):
    refused(await client.post(f"/queues?{query}"), 400, "invalid_input")


async def test_a_queue_is_either_in_the_query_or_in_the_body(client):
    refused(await client.post("/queues?name=a", json={"name": "b"}), 400, "invalid_input")
    await client.post("/queues?name=a")
    refused(await client.put("/queues/a?lease_ms=5", json={"lease_ms": 6}), 400, "invalid_input")


@pytest.mark.parametrize(
    "kind", ["text/plain", "text/plain;charset=UTF-8", "multipart/form-data", "application/xml"]
)
async def test_json_under_another_name_is_refused(client, kind):
    sent = {"content": b'{"name":"q"}', "headers": {"content-type": kind}}
    refused(await client.post("/queues", **sent), 415, "unsupported_media_type")


@everywhere
async def test_queues_are_listed_by_name(client):
    assert (await client.get("/queues")).json() == []
    for name in ("b", "c", "a"):
        await client.post(f"/queues?name={name}")

    listed = (await client.get("/queues")).json()

    assert [queue["name"] for queue in listed] == ["a", "b", "c"]
    assert listed[0] == {"name": "a", "number": 3, "settings": DEFAULTS, "visibility_timeout_seconds": 30.0}


async def test_the_list_is_read_in_pages(client):
    for name in ("a", "b", "c"):
        await client.post(f"/queues?name={name}")
    pages = [(await client.get(f"/queues?limit=2&after={after}")).json() for after in ("", "b", "c")]
    assert [[queue["name"] for queue in page] for page in pages] == [["a", "b"], ["c"], []]


async def test_the_list_has_counts_if_they_are_asked_for(client, emails):
    await client.post(f"{emails}/enqueue", content=b"x")
    [listed] = (await client.get("/queues?counts=true")).json()
    assert listed["stats"] == (await client.get(f"{emails}/stats")).json()
    assert listed["stats"]["ready"] == 1


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=-1", "counts=x", "page=1"])
async def test_a_list_that_makes_no_sense_is_refused(client, query):
    refused(await client.get(f"/queues?{query}"), 400, "invalid_input")


async def test_settings_change_by_the_query(client, emails):
    response = await client.put(emails, params={"max_attempts": 6, "visibility_timeout_seconds": 10})
    assert settings_of(response) == {**DEFAULTS, "max_attempts": 6, "lease_ms": 10_000}
    assert (await client.get(emails)).content == response.content


@everywhere
async def test_settings_change_by_json_and_null_clears_one(client, emails):
    changes = {"max_attempts": None, "ttl_ms": 5_000, "capacity": 3, "receive_rate": {"limit": 1}}
    assert settings_of(await client.put(emails, json=changes)) == {
        **DEFAULTS,
        **changes,
        "receive_rate": {"limit": 1, "per_ms": 1_000, "burst": 1},
    }

    cleared = {"ttl_ms": None, "capacity": None, "receive_rate": None}

    assert settings_of(await client.put(emails, json=cleared)) == {**DEFAULTS, "max_attempts": None}


async def test_a_change_of_nothing_changes_nothing(client, emails):
    before = (await client.get(emails)).content
    assert (await client.put(emails)).content == before
    assert (await client.put(emails, json={})).content == before


@pytest.mark.parametrize(
    "change",
    [{"lease_ms": None}, {"name": "other"}, {"max_attempts": "many"}, {"capacity": 0}, {"dlq": "emails"}, []],
)
async def test_a_change_that_makes_no_sense_is_refused(client, emails, change):
    before = (await client.get(emails)).content
    refused(await client.put(emails, json=change), 400, "invalid_input")
    assert (await client.get(emails)).content == before


@pytest.mark.parametrize("fixed", [{"groups": "fifo"}, {"dedup_scope": "group"}])
async def test_what_is_fixed_cannot_be_changed(client, emails, fixed):
    refused(await client.put(emails, json=fixed), 409, "setting_fixed")


async def test_dead_letters_may_not_go_round_in_circles(client):
    await client.post("/queues", json={"name": "a", "dlq": "b"})
    await client.post("/queues", json={"name": "b"})
    refused(await client.put("/queues/b?dlq=a"), 400, "invalid_input")


@everywhere
async def test_a_deleted_queue_is_gone_with_all_it_held(client, emails):
    await client.post(f"{emails}/enqueue", content=b"x")

    response = await client.delete(emails)

    assert (response.status_code, response.content) == (204, b"")
    assert "content-type" not in response.headers
    refused(await client.get(emails), 404, "queue_not_found")
    assert (await client.post("/queues?name=emails")).status_code == 201
    assert (await client.get(f"{emails}/stats")).json()["enqueued"] == 0


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_a_queue_that_is_not_there_is_not_found(client, method):
    refused(await client.request(method, "/queues/none"), 404, "queue_not_found")
    refused(await client.request(method, "/queues/%2e%2e"), 404, "queue_not_found")


async def test_the_default_settings_are_those_of_the_library(client, emails):
    shown = settings_of(await client.get(emails))
    settings = hq.Settings()
    assert {name: shown[name] for name in ("max_attempts", "lease_ms", "failed_ms", "max_payload_bytes")} == {
        "max_attempts": settings.max_attempts,
        "lease_ms": settings.lease_ms,
        "failed_ms": settings.failed_ms,
        "max_payload_bytes": settings.max_payload_bytes,
    }
