"""JSON that was made to hurt (X-7, X-12): always a 4xx in the one shape, and soon."""

import json
from time import process_time

import pytest

from hq.http.calls import Terms
from tests.http.shapes import check_problem, refused
from tests.http.ways import everywhere

SOON_S = 2.5
"""Of CPU, for the slowest machine; what is quadratic takes minutes."""

DEEP = [10**2, 10**3, 10**4, 10**5, 10**6]
MANY_KEYS = b",".join(b'"%x":1' % n for n in range(10**6))
DOCUMENTS = {
    "nothing": b"",
    "white space": b" \n\t",
    "cut off": b"{",
    "cut off later": b'{"payload":1',
    "cut off in a text": b'{"payload":"',
    "two documents": b'{"payload":1}{"payload":1}',
    "trailing text": b'{"payload":1} x',
    "trailing NUL": b'{"payload":1}\x00',
    "leading NUL": b'\x00{"payload":1}',
    "trailing comma": b'{"payload":1,}',
    "single quotes": b"{'payload':1}",
    "comment": b'{"payload":1/**/}',
    "bare key": b"{payload:1}",
    "BOM": b'\xef\xbb\xbf{"payload":1}',
    "UTF-16": '{"payload":1}'.encode("utf-16"),
    "UTF-16 without BOM": '{"payload":1}'.encode("utf-16-le"),
    "UTF-32": '{"payload":1}'.encode("utf-32"),
    "gzip": b"\x1f\x8b\x08\x00",
    "NaN": b'{"payload":NaN}',
    "Infinity": b'{"payload":Infinity}',
    "-Infinity": b'{"payload":-Infinity}',
    "leading zero": b'{"payload":01}',
    "no digits after the point": b'{"payload":1.}',
    "plus": b'{"payload":+1}',
    "hexadecimal": b'{"payload":0x10}',
    "payload is no UTF-8": b'{"payload":"\xff"}',
    "key in payload is no UTF-8": b'{"payload":{"\xff":1}}',
    "surrogate in UTF-8": b'{"payload":"\xed\xa0\x80"}',
    "overlong UTF-8": b'{"payload":"\xc0\xaf"}',
    "lone high surrogate": b'{"payload":"\\ud800"}',
    "lone low surrogate": b'{"payload":"\\udc00"}',
    "two high surrogates": b'{"payload":"\\ud800\\ud800"}',
    "raw NUL in a text": b'{"payload":"a\x00b"}',
    "raw line end in a text": b'{"payload":"a\nb"}',
    "no such escape": b'{"payload":"\\x41"}',
    "short escape": b'{"payload":"\\u12"}',
    "payload twice": b'{"payload":1,"payload":2}',
    "payload twice, once in disguise": b'{"payload":1,"p\\u0061yload":2}',
    "priority twice": b'{"payload":1,"priority":1,"priority":1}',
    "twice behind a number": b'{"payload":' + b"9" * 5_000 + b',"priority":1,"priority":2}',
    "twice behind a payload": b'{"payload":{"a":1,"a":1},"group":"a","group":"b"}',
    "a header twice": b'{"payload":1,"headers":{"a":"1","a":"2"}}',
    "a header twice, in capitals": b'{"payload":1,"headers":{"A":"1","A":"2"}}',
    "part of a policy twice": b'{"payload":1,"retry":{"base_ms":1,"base_ms":2}}',
    "lone surrogate in a group": b'{"payload":1,"group":"\\ud800"}',
    "lone surrogate in a header": b'{"payload":1,"headers":{"a":"\\ud800"}}',
    "group is no UTF-8": b'{"payload":1,"group":"\xff"}',
    "a number of a million digits": b'{"payload":1,"priority":' + b"9" * 10**6 + b"}",
    "1e999": b'{"payload":1,"priority":1e999}',
    "unknown with a long number": b'{"payload":1,"unknown":' + b"9" * 5_000 + b"}",
    "a million keys": b"{" + MANY_KEYS + b"}",
    "a million headers": b'{"payload":1,"headers":{' + MANY_KEYS + b"}}",
    "a long key": b'{"payload":1,"' + b"k" * 10**6 + b'":1}',
    "a text without end": b'{"payload":[' + b"[]," * 65 + b'"' + b'\\"' * 10**6,
    "backslashes without end": b'{"payload":[' + b"[]," * 65 + b'"' + b"\\" * 10**6,
    "quotes": b'"' * 10**6,
    "objects without end": b'{"a":' * 10**5,
    "both without end": b"[{" * 10**5,
}


async def quickly(client, *args, **options):
    started = process_time()
    response = await client.post(*args, **options)
    took = process_time() - started
    assert took < SOON_S * 2, f"{took:.2f} s for both lanes"
    return response


@pytest.fixture
def terms():
    return Terms(max_body_bytes=16 << 20)


async def test_a_message_of_hostile_json_is_refused(client, emails):
    for name, document in DOCUMENTS.items():
        response = await quickly(client, f"{emails}/messages", content=document)
        assert response.status_code == 400, name
        refused(response, 400, "invalid_input")
    assert (await client.get(f"{emails}/stats")).json()["enqueued"] == 0


@pytest.mark.parametrize(
    ("method", "route"),
    [
        ("POST", "/queues"),
        ("PUT", "/queues/emails"),
        ("POST", "/queues/emails/ack"),
        ("POST", "/queues/emails/dlq/requeue"),
        ("PUT", "/queues/emails/schedules/a"),
    ],
)
async def test_every_route_that_takes_json_refuses_hostile_json(client, emails, method, route):
    for name, document in DOCUMENTS.items():
        if document:  # no body at all leaves the word to the query, or to the defaults
            response = await client.request(method, route, content=document)
            assert response.status_code == 400, name
            check_problem(response)


async def test_one_hostile_item_does_not_harm_its_neighbours(client, emails):
    lines = {name: text for name, text in DOCUMENTS.items() if text.strip() and b"\n" not in text}
    for name, line in lines.items():
        body = b'{"payload":"before"}\n' + line + b'\n{"payload":"after"}\n'
        response = await quickly(
            client, f"{emails}/messages", content=body, headers={"content-type": "application/x-ndjson"}
        )
        before, hostile, after = response.json()["results"]
        assert hostile.get("error", {}).get("code") == "invalid_input", name
        assert before["id"]
        assert after["id"]


@pytest.mark.parametrize("depth", DEEP)
@pytest.mark.parametrize(("left", "right"), [(b"[", b"]"), (b'{"a":', b"}")])
async def test_what_is_nested_too_deeply_is_refused(client, emails, depth, left, right):
    nested = left * depth + b"1" + right * depth
    for body in (nested, b'{"payload":' + nested + b"}"):
        refused(await quickly(client, f"{emails}/messages", content=body), 400, "invalid_input")
        refused(await quickly(client, "/queues", content=body), 400, "invalid_input")
    declared = {"content-type": "application/json"}
    refused(
        await quickly(client, f"{emails}/enqueue", content=nested, headers=declared), 400, "invalid_input"
    )


async def test_what_is_nested_as_deeply_as_may_be_is_taken(client, emails):
    nested = b"[" * 63 + b'"[[[[{{{{\\"["' + b"]" * 63
    response = await client.post(f"{emails}/messages", content=b'{"payload":' + nested + b"}")
    assert response.status_code == 201
    assert b'"payload":' + nested in (await client.get(f"{emails}/receive")).content
    deeper = b'{"payload":[' + nested + b"]}"
    refused(await client.post(f"{emails}/messages", content=deeper), 400, "invalid_input")


@pytest.mark.parametrize(
    "body",
    [b"[" + b"1," * (8_000_000), b"[" + b"1," * 8_000_000 + b"1]", b"[" + b"[]," * 5_000_000 + b"1]"],
    ids=["eight million numbers without end", "eight million numbers", "five million arrays"],
)
async def test_an_array_of_far_too_many_is_refused_soon(client, emails, body):
    for route in (f"{emails}/messages", f"{emails}/ack"):
        refused(await quickly(client, route, content=body), 400, "invalid_input")


@pytest.mark.parametrize("body", [b"\n" * (16 << 20), b"1\n" * (8 << 20)])
async def test_far_too_many_lines_are_refused_soon(client, emails, body):
    response = await quickly(
        client, f"{emails}/messages", content=body, headers={"content-type": "application/x-ndjson"}
    )
    refused(response, 400, "invalid_input")


async def test_a_large_payload_of_many_parts_is_taken_soon(client):
    await client.post("/queues?name=emails&max_payload_bytes=8000000")
    payload = b"[" + b",".join(b'{"name":"n%d","tags":["a","b"]}' % n for n in range(20_000)) + b"]"
    response = await quickly(client, "/queues/emails/messages", content=b'{"payload":' + payload + b"}")
    assert response.status_code == 201


NOT_INTEGERS = [
    True,
    False,
    1.0,
    1.5,
    -1,
    -(2**63),
    2**31 * 10**12,
    2**62,
    2**63,
    2**64,
    "1",
    [],
    {},
    10**400,
]
SPANS = ["delay_ms", "ttl_ms", "dedup_ms", "lease_ms", "max_attempts"]


@pytest.mark.parametrize("value", NOT_INTEGERS, ids=lambda value: str(value)[:20])
async def test_an_integer_is_an_integer_within_its_bounds(client, emails, value):
    text = json.dumps(value)
    for name in SPANS:
        body = f'{{"payload":1,"{name}":{text}}}'
        refused(await client.post(f"{emails}/messages", content=body), 400, "invalid_input")
        body = f'{{"name":"q","{name}":{text}}}'
        refused(await client.post("/queues", content=body), 400, "invalid_input")
    for name in ("capacity", "concurrency", "max_payload_bytes", "failed_ms", "visibility_timeout_seconds"):
        refused(await client.put(emails, content=f'{{"{name}":{text}}}'), 400, "invalid_input")
    held = f'{{"id":"00000000-0000-8000-8400-000000000001","token":"00","lease_ms":{text}}}'
    response = await client.post(f"{emails}/extend", content=held)
    assert response.status_code in {400, 404}, response.text


@everywhere
@pytest.mark.parametrize("value", ["-1", "9223372036854775808", "1e400", "1.5"])
async def test_an_integer_of_the_query_is_within_its_bounds(client, emails, value):
    for method, route in (
        ("GET", f"{emails}/receive?lease_ms={value}"),
        ("GET", f"{emails}/receive?wait_ms={value}"),
        ("POST", f"{emails}/poll?batch={value}"),
        ("POST", f"{emails}/enqueue?delay_ms={value}"),
        ("GET", f"{emails}/peek?limit={value}"),
        ("GET", f"/queues?limit={value}"),
        ("GET", f"/journal?after={value}"),
        ("PUT", f"{emails}?lease_ms={value}"),
        ("POST", f"/queues?name=q&max_attempts={value}"),
    ):
        refused(await client.request(method, route), 400, "invalid_input")


@pytest.mark.parametrize(
    "value", ["true", "1.0", "1e1", "0x1", "1_0", "%201", "1%20", "+1", "", "null", "NaN", "1" * 5_000]
)
async def test_an_integer_of_the_query_is_written_in_digits(client, emails, value):
    for method, route in (
        ("GET", f"{emails}/receive?lease_ms={value}"),
        ("POST", f"{emails}/poll?batch={value}"),
        ("POST", f"{emails}/enqueue?priority={value}"),
        ("GET", f"{emails}/peek?limit={value}"),
        ("PUT", f"{emails}?max_attempts={value}"),
    ):
        refused(await client.request(method, route), 400, "invalid_input")


@pytest.mark.parametrize(
    "query",
    [
        "&".join(f"a{n}=1" for n in range(1_000)),
        "priority=1&" * 200,
        "%",
        "%zz=1",
        "group=%ff%fe",
        "group=%ed%a0%80",
        "=",
        "&&&=&&",
        "priority=1;priority=2",
        "a[]=1",
        "__class__=1",
    ],
)
async def test_a_hostile_query_is_refused(client, emails, query):
    refused(await client.post(f"{emails}/enqueue?{query}", content=b"x"), 400, "invalid_input")
