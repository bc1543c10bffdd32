"""The scenarios hydra-mq tests itself with, Y1 to Y8, by the rules of hq."""

import pytest

import hq


async def test_y1_a_message_holds_every_option_it_was_given(system, queue):
    options = {"priority": 42, "max_attempts": 42, "lease_ms": 42, "dedup_key": "42", "ttl_ms": 42}
    accepted = await queue.enqueue("42", retry=hq.RetryPolicy(base_ms=42), **options)

    seen = await queue.get(accepted.id)
    assert (seen.payload, seen.priority, seen.dedup_key, seen.state) == ("42", 42, "42", "ready")
    assert seen.expires_at == seen.enqueued_at + 42


async def test_y2_a_full_queue_refuses(system):
    queue = await system.create_queue("full", capacity=1, concurrency=1)
    await queue.enqueue("a")
    with pytest.raises(hq.QueueFull):
        await queue.enqueue("b")


async def test_y3_to_y5_a_key_is_of_its_queue_and_a_duplicate_stores_nothing(system):
    """A ready message of hydra can be doubled; here its key is held while it lives."""
    for name in ("alpha", "beta"):
        queue = await system.create_queue(name, concurrency=1)
        first = await queue.enqueue("one", dedup_key="hello")
        again = await queue.enqueue("two", dedup_key="hello")
        assert (first.duplicate, again.duplicate, again.id) == (False, True, first.id)
        # hydra's update is a word of its own.
        await queue.replace("hello", "two")
        assert [message.payload for message in await queue.browse()] == ["two"]


@pytest.mark.parametrize("minute", ["/5", "**", "", "5-/3", "/3", "60", "5-60"])
async def test_y6_a_bad_cron_field_is_refused(queue, minute):
    with pytest.raises(hq.InvalidInput):
        await queue.set_schedule("s", "x", cron=f"{minute} * * * *")


@pytest.mark.parametrize(
    ("minute", "expected"),
    [
        ("1", [1]),
        ("1-3", [1, 2, 3]),
        ("*", list(range(60))),
        ("*/5", list(range(0, 60, 5))),
        ("0-10/5", [0, 5, 10]),
        ("3,0-10/5", [0, 3, 5, 10]),
    ],
)
async def test_y7_a_cron_field_means_these_minutes(system, queue, clock, minute, expected):
    await queue.set_schedule("s", "x", cron=f"{minute} * * * *", missed="catch_up", catch_up=1_000)
    clock.advance(3_600_000 - clock.now % 3_600_000 - 1)
    [schedule] = await queue.schedules()
    minutes = sorted({tick // 60_000 % 60 for tick in schedule.next_ticks})

    assert set(minutes) <= set(expected)
    assert len(minutes) == min(5, len(expected))


@pytest.mark.parametrize("text", ["it's", 'say "so"', "'; DROP TABLE messages; --", "back\\slash", "%s :x ?"])
async def test_y8_text_is_never_sql(system, queue, text):
    accepted = await queue.enqueue(text, dedup_key=text, group=text, headers={text: text})
    seen = await queue.get(accepted.id)
    assert (seen.payload, seen.dedup_key, seen.group, seen.headers) == (text, text, text, {text: text})
    with pytest.raises(hq.InvalidInput):
        await system.create_queue(text)
