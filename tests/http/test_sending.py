"""Enqueueing: the body as it is, or messages as JSON, one or many."""

from base64 import b64encode
from uuid import UUID

import pytest

import hq
from hq.http.calls import Terms
from tests.http.shapes import check_problem, refused
from tests.http.ways import everywhere

BINARY = bytes(range(256))


async def receive(client, queue="/queues/emails"):
    response = await client.get(f"{queue}/receive")
    assert response.status_code == 200, response.text
    return response.json()


async def enqueue(client, content=b"x", queue="/queues/emails", **options):
    response = await client.post(f"{queue}/enqueue", content=content, **options)
    assert response.status_code == 200, response.text
    return response.json()


@everywhere
async def test_the_body_is_the_payload(client, emails):
    accepted = await enqueue(client, b'{"to": "a@example.com",  "n": [1, 2.50]}')

    assert UUID(accepted["id"])
    assert accepted == {"id": accepted["id"], "message_id": accepted["id"], "duplicate": False}
    response = await client.get(f"{emails}/receive")
    assert b'"payload":{"to": "a@example.com",  "n": [1, 2.50]}' in response.content
    assert response.json()["content_type"] == "application/json"


@pytest.mark.parametrize("payload", [BINARY, b"", b"\x00", b"{", b"\xff" * 1_000])
async def test_bytes_come_back_as_they_are(client, emails, payload):
    await enqueue(client, payload, headers={"content-type": "application/octet-stream"})
    message = await receive(client)
    assert message["payload_base64"] == b64encode(payload).decode()
    assert "payload" not in message


@pytest.mark.parametrize("kind", ["text/plain", "text/csv; header=present", "text/plain; charset=utf-8"])
async def test_text_comes_back_as_text(client, emails, kind):
    await enqueue(client, "Grüße,\n\x00 {".encode(), headers={"content-type": kind})
    message = await receive(client)
    assert (message["payload"], message["content_type"]) == ("Grüße,\n\x00 {", kind)


@pytest.mark.parametrize(
    ("payload", "kind"), [(b"\xff", "text/plain"), ("Hi".encode("utf-16-le"), "text/plain; charset=utf-16le")]
)
async def test_text_that_cannot_be_read_comes_back_as_bytes(client, emails, payload, kind):
    await enqueue(client, payload, headers={"content-type": kind})
    assert (await receive(client))["payload_base64"] == b64encode(payload).decode()


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "Application/JSON",
        "application/cloudevents+json",
        "application/cloudevents+json; charset=utf-8",
    ],
)
@pytest.mark.parametrize("payload", [b'{"a":{}}', b"null", b'"x"', b" 1e999 ", b'{"a":1,"a":2}'])
async def test_json_comes_back_as_json_whatever_its_parameters(client, emails, kind, payload):
    await enqueue(client, payload, headers={"content-type": kind})
    response = await client.get(f"{emails}/receive")
    assert b'"payload":' + payload in response.content
    assert response.json()["content_type"] == kind


@pytest.mark.parametrize(
    "kind", ["text/plain; x=+json", "application/octet-stream;+json", "a/b; application/json"]
)
async def test_what_only_looks_like_json_cannot_break_a_reply(client, emails, kind):
    sent = await enqueue(client, b'1,"id":"forged"', headers={"content-type": kind})
    message = await receive(client)
    assert message["id"] == sent["id"]
    assert message.get("payload", '1,"id":"forged"') == '1,"id":"forged"'


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (b'{"a":1}', "application/json"),
        (b"17", "application/json"),
        (b"a=1&b=2", "application/octet-stream"),
        (b"", "application/octet-stream"),
        (b" ", "application/octet-stream"),
        (b"\xff", "application/octet-stream"),
        (b"[" * 1_000, "application/octet-stream"),
    ],
)
@pytest.mark.parametrize("said", [{}, {"content-type": "application/x-www-form-urlencoded"}])
async def test_what_is_not_declared_is_seen(client, emails, payload, kind, said):
    await enqueue(client, payload, headers=said)
    assert (await receive(client))["content_type"] == kind


@pytest.mark.parametrize(
    "payload", [b"", b" ", b"{", b"nope", b"\xff", b'"\xff"', b"1 2", "1".encode("utf-16")]
)
async def test_what_is_declared_as_json_must_be_json(client, emails, payload):
    response = await client.post(
        f"{emails}/enqueue", content=payload, headers={"content-type": "application/json"}
    )
    refused(response, 400, "invalid_input")


async def test_options_are_query_parameters(client, emails, clock):
    query = {
        "priority": -5,
        "group": "g",
        "dedup_key": "k",
        "dedup_ms": 1,
        "delay_ms": 1_000,
        "ttl_ms": 9_000,
        "max_attempts": 1,
        "lease_ms": 100,
    }
    sent = await enqueue(client, params=query)
    shown = (await client.get(f"{emails}/messages/{sent['id']}")).json()
    assert {name: shown[name] for name in ("priority", "group", "dedup_key", "state")} == {
        "priority": -5,
        "group": "g",
        "dedup_key": "k",
        "state": "delayed",
    }
    assert (shown["available_at"], shown["expires_at"]) == (clock.now + 1_000, clock.now + 9_000)
    clock.advance(1_000)
    message = await receive(client)
    assert message["lease_expires_at"] == clock.now + 100
    await client.post(f"{emails}/nack", json={"id": message["id"], "token": message["token"]})
    assert (await client.get(f"{emails}/stats")).json()["failed"] == 1


@pytest.mark.parametrize(
    "query",
    [
        "priority=high",
        "priority=40000",
        "delay_ms=-1",
        "ttl_ms=0",
        "group=" + "g" * 129,
        "dedup_key=" + "k" * 513,
        "group=a&concurrency_key=b",
        "unknown=1",
        "priority=1&priority=2",
        "priority",
        "group=%ff",
    ],
)
async def test_options_that_make_no_sense_are_refused(client, emails, query):
    refused(await client.post(f"{emails}/enqueue?{query}", content=b"x"), 400, "invalid_input")


@everywhere
async def test_a_message_with_a_known_idempotency_key_is_the_earlier_one(client, emails):
    first = await enqueue(client, headers={"idempotency-key": "order-1"})
    again = await enqueue(client, b"other", headers={"idempotency-key": "order-1"})
    assert again == {**first, "duplicate": True}
    for query in ("dedup_key=order-1", "idempotency_key=order-1"):
        assert (await enqueue(client, params=query))["id"] == first["id"]
    for body in ({"idempotency_key": "order-1"}, {"dedup_key": "order-1"}):
        response = await client.post(f"{emails}/messages", json={"payload": 1, **body})
        assert response.json() == {**first, "duplicate": True}
    response = await client.post(
        f"{emails}/messages", json={"payload": 1}, headers={"idempotency-key": "order-1"}
    )
    assert response.json()["id"] == first["id"]
    assert (await client.get(f"{emails}/stats")).json()["enqueued"] == 1


@pytest.mark.parametrize(
    ("query", "header"),
    [
        ("dedup_key=a&idempotency_key=b", None),
        ("dedup_key=a", b"b"),
        ("", b"\xff"),
        ("", b"k" * 513),
        ("", b""),
    ],
)
async def test_an_idempotency_key_must_be_clear(client, emails, query, header):
    headers = {} if header is None else {b"idempotency-key": header}
    response = await client.post(f"{emails}/enqueue?{query}", content=b"x", headers=headers)
    refused(response, 400, "invalid_input")


async def test_an_idempotency_key_is_for_one_message(client, emails):
    response = await client.post(
        f"{emails}/messages", json=[{"payload": 1}, {"payload": 2}], headers={"idempotency-key": "k"}
    )
    refused(response, 400, "invalid_input")


@pytest.mark.parametrize("payload", [None, False, 0, "", "text", [], {"a": [1, {"b": None}]}])
async def test_a_json_message_holds_any_json(client, emails, payload):
    response = await client.post(f"{emails}/messages", json={"payload": payload})

    assert response.status_code == 201
    message = await receive(client)
    assert (message["id"], message["payload"]) == (response.json()["id"], payload)


async def test_a_json_message_has_options_and_headers(client, emails, clock):
    new = {
        "payload": 1,
        "headers": {"Trace": "abc", "empty": ""},
        "content_type": "application/vnd.x+json",
        "priority": 7,
        "concurrency_key": "c",
        "dedup_key": "k",
        "dedup_ms": 5,
        "delay_ms": 0,
        "ttl_ms": 60_000,
        "max_attempts": 2,
        "lease_ms": 500,
        "retry": {"backoff": "fixed", "base_ms": 250, "jitter_percent": 0},
    }
    await client.post(f"{emails}/messages", json=new)
    message = await receive(client)
    for name in ("headers", "content_type", "priority", "concurrency_key", "dedup_key"):
        assert message[name] == new[name]
    assert message["lease_expires_at"] == clock.now + 500
    nacked = await client.post(f"{emails}/nack", json={"id": message["id"], "token": message["token"]})
    assert nacked.json()["until"] == clock.now + 250


async def test_a_json_message_may_hold_bytes(client, emails):
    new = {"payload_base64": b64encode(BINARY).decode(), "content_type": "image/png"}
    assert (await client.post(f"{emails}/messages", json=new)).status_code == 201
    message = await receive(client)
    assert (message["payload_base64"], message["content_type"]) == (new["payload_base64"], "image/png")


async def test_json_may_be_sent_as_base64(client, emails):
    new = {"payload_base64": b64encode(b"[1]").decode(), "content_type": "application/json"}
    await client.post(f"{emails}/messages", json=new)
    assert (await receive(client))["payload"] == [1]


@pytest.mark.parametrize(
    "new",
    [
        {},
        {"payload": 1, "payload_base64": ""},
        {"payload_base64": "!"},
        {"payload_base64": "YQ"},
        {"payload_base64": None},
        {"payload_base64": "bm9wZQ==", "content_type": "application/json"},
        {"payload": "x", "content_type": "text/plain"},
        {"payload": 1, "content_type": "x" * 129},
        {"payload": 1, "content_type": 1},
        {"payload": 1, "headers": {"a": 1}},
        {"payload": 1, "headers": []},
        {"payload": 1, "headers": {str(n): "" for n in range(65)}},
        {"payload": 1, "priority": "1"},
        {"payload": 1, "priority": 1.5},
        {"payload": 1, "delay_ms": True},
        {"payload": 1, "group": "a", "concurrency_key": "b"},
        {"payload": 1, "dedup_key": "a", "idempotency_key": "b"},
        {"payload": 1, "dedup_key": ""},
        {"payload": 1, "retry": {"backoff": "never"}},
        {"payload": 1, "retry": {"factor": 0}},
        {"payload": 1, "delay": 5},
        "text",
        5,
        None,
    ],
)
async def test_a_json_message_that_makes_no_sense_is_refused(client, emails, new):
    refused(await client.post(f"{emails}/messages", json=new), 400, "invalid_input")
    assert (await client.get(f"{emails}/stats")).json()["enqueued"] == 0


@everywhere
async def test_an_array_is_enqueued_in_order_with_a_result_for_each(client, emails):
    items = [
        {"payload": 1},
        {"payload": 2, "delay_ms": -1},
        {"payload": 3},
        "four",
        {"payload": "x" * 600_000},
    ]

    response = await client.post(f"{emails}/messages", json=items)

    assert response.status_code == 200
    first, second, third, fourth, fifth = response.json()["results"]
    assert [error["error"]["code"] for error in (second, fourth, fifth)] == [
        "invalid_input",
        "invalid_input",
        "payload_too_large",
    ]
    assert [(await receive(client))["id"] for _ in range(2)] == [first["id"], third["id"]]
    assert first["duplicate"] is False
    assert await receive(client) is None


@pytest.mark.parametrize("kind", ["application/x-ndjson", "application/jsonl; charset=utf-8"])
async def test_lines_are_enqueued_with_a_result_for_each(client, emails, kind):
    keyed = b'{"payload":3,"dedup_key":"k"}\n{"payload":4,"dedup_key":"k"}'
    body = b'{"payload":1}\n\n  \r\n{"payload":\n{"payload":[2]}\r\n' + keyed

    response = await client.post(f"{emails}/messages", content=body, headers={"content-type": kind})

    results = response.json()["results"]
    assert [result.get("duplicate", result.get("error", {}).get("code")) for result in results] == [
        False,
        "invalid_input",
        False,
        False,
        True,
    ]
    assert [(await receive(client))["payload"] for _ in range(3)] == [1, [2], 3]


async def test_nothing_is_enqueued_of_nothing(client, emails):
    assert (await client.post(f"{emails}/messages", json=[])).json() == {"results": []}
    response = await client.post(
        f"{emails}/messages", content=b"", headers={"content-type": "application/x-ndjson"}
    )
    assert response.json() == {"results": []}
    refused(await client.post(f"{emails}/messages", content=b""), 400, "invalid_input")


@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
async def test_at_most_a_thousand_are_enqueued_at_once(client, emails, kind):
    signs = (b"[", b",", b"]") if kind == "application/json" else (b"", b"\n", b"")
    for count, status in ((1_000, 200), (1_001, 400)):
        body = signs[0] + signs[1].join([b'{"payload":1}'] * count) + signs[2]
        response = await client.post(f"{emails}/messages", content=body, headers={"content-type": kind})
        assert response.status_code == status
    check_problem(response)
    assert (await client.get(f"{emails}/stats")).json()["enqueued"] == 1_000


@pytest.mark.parametrize("body", [b"[1", b'[{"payload":1},]', b"[] []", b"[{]"])
async def test_an_array_that_cannot_be_read_is_refused_whole(client, emails, body):
    refused(await client.post(f"{emails}/messages", content=body), 400, "invalid_input")
    assert (await client.get(f"{emails}/stats")).json()["enqueued"] == 0


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "image/png"])
async def test_messages_are_declared_as_json(client, emails, kind):
    sent = {"content": b'{"payload":1}', "headers": {"content-type": kind}}
    refused(await client.post(f"{emails}/messages", **sent), 415, "unsupported_media_type")


@pytest.mark.parametrize("route", ["enqueue", "messages"])
async def test_a_queue_that_is_not_there_takes_nothing(client, route):
    refused(await client.post(f"/queues/none/{route}", json={"payload": 1}), 404, "queue_not_found")


async def test_a_payload_beyond_the_size_of_the_queue_is_refused(client):
    await client.post("/queues?name=emails&max_payload_bytes=10")
    assert (await client.post("/queues/emails/enqueue", content=b"x" * 10)).status_code == 200
    refused(await client.post("/queues/emails/enqueue", content=b"x" * 11), 413, "payload_too_large")
    refused(
        await client.post("/queues/emails/messages", json={"payload": "x" * 11}), 413, "payload_too_large"
    )


@everywhere
async def test_a_full_queue_says_when_to_come_again(client):
    await client.post("/queues?name=emails&capacity=1")
    await enqueue(client)
    response = await client.post("/queues/emails/enqueue", content=b"x")
    refused(response, 429, "queue_full")
    assert response.headers["retry-after"] == "1"


async def test_a_rate_says_when_it_allows_more(client, clock):
    rate = {"limit": 1, "per_ms": 60_000, "burst": 1}
    await client.post("/queues", json={"name": "emails", "enqueue_rate": rate})
    await enqueue(client)
    clock.advance(15_500)
    response = await client.post("/queues/emails/enqueue", content=b"x")
    refused(response, 429, "rate_limited")
    assert response.headers["retry-after"] == "45"
    clock.advance(44_500)
    await enqueue(client)


@pytest.mark.parametrize("limits", [hq.Limits(memory_bytes=20_000)])
async def test_a_server_without_memory_says_when_to_come_again(client, emails):
    response = await client.post(f"{emails}/enqueue", content=b"x")
    while response.status_code == 200:
        assert await receive(client), "what is leased stays in memory"
        response = await client.post(f"{emails}/enqueue", content=b"x")
    refused(response, 429, "memory_full")


@pytest.mark.parametrize("terms", [Terms(max_body_bytes=1_000)])
@everywhere
async def test_a_body_beyond_the_limit_is_refused(client, emails):
    for route in (f"{emails}/enqueue", f"{emails}/messages", "/queues", f"{emails}/release"):
        refused(await client.post(route, content=b" " * 1_001), 413, "body_too_large")
    await enqueue(client, b"x" * 1_000)


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "GZIP", "gzip, identity", "identity, gzip"])
async def test_a_compressed_body_is_refused(client, emails, encoding):
    sent = {"content": b"x", "headers": {"content-encoding": encoding}}
    for route in (f"{emails}/enqueue", f"{emails}/messages", "/queues"):
        refused(await client.post(route, **sent), 415, "unsupported_media_type")
    await enqueue(client, headers={"content-encoding": "identity"})
