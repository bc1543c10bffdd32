"""Lines of NDJSON as messages, each of them once."""

from base64 import b64encode

import pytest

import hq


def numbered(*lines):
    return list(enumerate((line.encode() for line in lines), start=1))


async def test_a_line_is_a_message_as_it_is_enqueued(queue, clock):
    told = await queue.import_lines(
        numbered(
            '{"payload": {"a": 1.50}, "priority": 2, "headers": {"h": "v"}, "dedup_key": "k"}',
            '{"payload": "text", "content_type": "text/plain"}',
            f'{{"payload_base64": "{b64encode(bytes(3)).decode()}"}}',
        )
    )

    assert [one.duplicate for one in told] == [False] * 3
    first, second, third = await queue.peek(3)
    assert (first.body, first.priority, first.headers) == (b'{"a": 1.50}', 2, {"h": "v"})
    assert first.dedup_key == "k"
    assert (second.payload, second.content_type) == ("text", "text/plain")
    assert third.payload == bytes(3)


async def test_a_line_that_comes_again_is_known_though_its_message_is_completed(queue, clock):
    lines = numbered('{"payload": 1}', '{"payload": 1}')
    await queue.import_lines(lines)
    await queue.complete(await queue.receive(2))
    clock.advance(days=6)

    again = await queue.import_lines(lines)

    assert [one.duplicate for one in again] == [True, True]
    assert await queue.receive() == []


@pytest.mark.parametrize(
    ("lines", "source"),
    [([(2, b'{"payload": 1}')], ""), ([(1, b'{"payload": 2}')], ""), ([(1, b'{"payload": 1}')], "other")],
)
async def test_another_line_is_another_message(queue, lines, source):
    await queue.import_lines([(1, b'{"payload": 1}')])
    [accepted] = await queue.import_lines(lines, source=source)
    assert not accepted.duplicate


async def test_times_are_those_of_the_export(queue, clock):
    until, over = clock.now + 1_000, clock.now + 2_000
    await queue.import_lines(numbered(f'{{"payload": 1, "available_at": {until}, "expires_at": {over}}}'))
    [seen] = await queue.browse()
    assert (seen.available_at, seen.expires_at) == (until, over)


@pytest.mark.parametrize(
    "line",
    ["", "{", "[]", "{}", '{"payload": 1, "what": 2}', '{"payload": 1, "payload_base64": ""}',
     '{"payload": 1, "content_type": "text/plain"}', '{"payload": 1, "priority": 1000000}'],
)  # fmt: skip
async def test_a_line_that_is_no_message_is_refused_and_the_others_are_not(queue, line):
    refusal, accepted = await queue.import_lines(numbered(line, '{"payload": 2}'))
    assert isinstance(refusal, hq.InvalidInput)
    assert not accepted.duplicate
    assert [one.payload for one in await queue.peek(9)] == [2]
