"""A payload comes back as it went in, or is refused when it is enqueued."""

import pytest

import hq

JSON_VALUES = [
    None,
    True,
    0,
    -1,
    2**70,
    1.5,
    [],
    {},
    [1, [2.5, None]],
    {"to": "a@example.com", "n": {"é": []}},
]


async def received(queue):
    [message] = await queue.receive()
    return message


@pytest.mark.parametrize(
    ("payload", "content_type"),
    [
        (b"\x00\xff", "application/octet-stream"),
        (b"", "application/octet-stream"),
        ("grüße", "text/plain; charset=utf-8"),
        ("", "text/plain; charset=utf-8"),
        *((value, "application/json") for value in JSON_VALUES),
    ],
)
async def test_a_payload_comes_back_as_it_went_in(queue, payload, content_type):
    await queue.enqueue(payload)
    message = await received(queue)

    assert message.payload == payload
    assert type(message.payload) is type(payload)
    assert message.content_type == content_type


@pytest.mark.parametrize("buffer", [bytearray(b"ab"), memoryview(b"ab")])
async def test_a_buffer_comes_back_as_bytes(queue, buffer):
    await queue.enqueue(buffer)
    assert (await received(queue)).payload == b"ab"


async def test_the_body_is_the_bytes_with_nothing_added(queue):
    await queue.enqueue({"a": [1, "é"]})
    assert (await received(queue)).body == '{"a":[1,"é"]}'.encode()


@pytest.mark.parametrize(
    "payload",
    [float("nan"), [float("inf")], {"a": {1, 2}}, {1: "a"}, (1, 2), {"a": (1,)}, print, "\ud800", ["\ud800"]],
    ids=ascii,
)
async def test_a_value_that_json_cannot_keep_is_refused(queue, payload):
    with pytest.raises(hq.InvalidInput):
        await queue.enqueue(payload)


async def test_a_value_nested_too_deeply_is_refused(queue):
    nested = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(hq.InvalidInput):
        await queue.enqueue(nested)


@pytest.mark.parametrize(
    ("sent", "content_type", "payload"),
    [
        (b"<p>", "text/html", "<p>"),
        (b"<p>", "text/html; charset=UTF-8", "<p>"),
        (b"\xe9", "text/plain; charset=latin-1", b"\xe9"),
        (b"\x89PNG", "image/png", b"\x89PNG"),
        ('{"a":1}', "application/json", {"a": 1}),
        (b'{"a": 1}', "application/problem+json", {"a": 1}),
        ({"a": 1}, "application/vnd.a+json; v=1", {"a": 1}),
    ],
)
async def test_the_content_type_decides_what_the_payload_is(queue, sent, content_type, payload):
    await queue.enqueue(sent, content_type=content_type)
    message = await received(queue)
    assert (message.payload, message.content_type) == (payload, content_type)


@pytest.mark.parametrize(
    ("payload", "content_type"),
    [
        (b"{", "application/json"),
        ("NaN", "application/json"),
        (b"\xff", "a/b+json"),
        ({"a": 1}, "text/plain"),
    ],
)
async def test_a_payload_that_is_not_what_it_is_declared_as_is_refused(queue, payload, content_type):
    with pytest.raises(hq.InvalidInput):
        await queue.enqueue(payload, content_type=content_type)


async def test_text_that_is_not_utf_8_is_told_when_it_is_read_and_its_body_is_there(queue):
    await queue.enqueue(b"\xff", content_type="text/plain")
    message = await received(queue)
    with pytest.raises(hq.PayloadUnreadable):
        _ = message.payload
    assert message.body == b"\xff"


async def test_a_payload_that_is_too_large_is_refused(system):
    queue = await system.create_queue("small", max_payload_bytes=3)
    await queue.enqueue(b"abc")
    with pytest.raises(hq.PayloadTooLarge):
        await queue.enqueue(b"abcd")
