"""Putting messages in, one or many, with what may be said of them."""

import pytest

import hq


async def test_what_a_producer_says_of_a_message_arrives_with_it(queue, clock):
    accepted = await queue.enqueue(
        b"x",
        priority=7,
        group="g",
        dedup_key="k",
        headers={"trace": "1"},
        content_type="a/b",
        lease_ms=5_000,
        max_attempts=2,
    )
    [message] = await queue.receive()

    assert message.id == accepted.id
    assert (message.priority, message.group, message.dedup_key) == (7, "g", "k")
    assert (message.headers, message.content_type) == ({"trace": "1"}, "a/b")
    assert (message.receives, message.attempts, message.history, message.origin_id) == (1, 1, (), None)
    assert (message.enqueued_at, message.lease_expires_at) == (clock.now, clock.now + 5_000)


async def test_a_concurrency_key_arrives_too(queue):
    await queue.enqueue(b"x", concurrency_key="customer-1")
    [message] = await queue.receive()
    assert (message.concurrency_key, message.group) == ("customer-1", None)


async def test_a_delayed_message_comes_when_it_is_due(queue, clock):
    await queue.enqueue(b"later", delay_ms=1_000)
    assert await queue.receive() == []
    clock.advance(1_000)
    assert len(await queue.receive()) == 1


async def test_a_message_past_its_ttl_never_comes(queue, clock):
    await queue.enqueue(b"news", ttl_ms=1_000)
    clock.advance(1_000)
    assert await queue.receive() == []


async def test_a_message_has_its_own_retry_policy_if_it_says_so(queue):
    await queue.enqueue(b"x", retry=hq.RetryPolicy(backoff=hq.Backoff.NONE))
    [message] = await queue.receive()
    assert (await message.retry()).state == "ready"


async def test_a_duplicate_is_told_with_the_id_of_the_first(queue):
    first = await queue.enqueue(b"a", dedup_key="welcome-42")
    second = await queue.enqueue(b"b", dedup_key="welcome-42")

    assert (first.duplicate, second.duplicate) == (False, True)
    assert first.id == second.id
    assert (await queue.stats()).ready == 1


async def test_an_unknown_option_is_told_with_the_closest_known_one(queue):
    with pytest.raises(hq.InvalidInput, match="did you mean 'priority'"):
        await queue.enqueue(b"", prioritty=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"priority": "high"},
        {"delay_ms": -1},
        {"headers": {"a": 1}},
        {"headers": {1: "a"}},
        {"headers": [("a", "b")]},
        {"content_type": 5},
        {"retry": "fixed"},
        {"group": "g", "concurrency_key": "k"},
    ],
)
async def test_an_option_of_the_wrong_kind_is_refused(queue, wrong):
    with pytest.raises(hq.InvalidInput):
        await queue.enqueue(b"", **wrong)
    assert (await queue.stats()).enqueued == 0


async def test_many_are_enqueued_in_their_order(queue):
    accepted = await queue.enqueue_many([str(number) for number in range(500)])
    messages = await queue.receive(1_000)

    assert [message.payload for message in messages] == [str(number) for number in range(500)]
    assert [message.id for message in messages] == [one.id for one in accepted]


async def test_many_may_be_payloads_and_outgoing_values(queue):
    await queue.enqueue_many([{"a": 1}, hq.Outgoing("urgent", priority=9), b"x"])
    messages = await queue.receive(10)
    assert [message.payload for message in messages] == ["urgent", {"a": 1}, b"x"]


async def test_one_refusal_among_many_stops_no_other(queue):
    first, refused, duplicate = await queue.enqueue_many(
        [hq.Outgoing("a", dedup_key="k"), float("nan"), hq.Outgoing("b", dedup_key="k")]
    )
    assert isinstance(refused, hq.InvalidInput)
    assert (duplicate.id, duplicate.duplicate) == (first.id, True)


async def test_many_are_bounded(queue):
    with pytest.raises(hq.InvalidInput, match="1000"):
        await queue.enqueue_many([b""] * 1_001)
    assert (await queue.stats()).enqueued == 0


async def test_many_for_a_queue_that_is_not_there_are_refused_as_one(system):
    with pytest.raises(hq.QueueNotFound):
        await system.queue("nobody").enqueue_many([b"a"])


def test_an_outgoing_value_shows_no_payload():
    assert "secret" not in repr(hq.Outgoing("secret", dedup_key="secret"))


async def test_a_full_queue_says_so(system):
    queue = await system.create_queue("small", capacity=1)
    accepted, refused = await queue.enqueue_many(["a", "b"])
    assert accepted.duplicate is False
    assert isinstance(refused, hq.QueueFull)
