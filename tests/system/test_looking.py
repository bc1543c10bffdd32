"""Looking without taking, and operating a queue."""

import pytest

import hq


async def test_peek_shows_what_is_next_and_leaves_it(queue):
    await queue.enqueue_many(["a", hq.Outgoing("b", priority=1)])
    assert [seen.payload for seen in await queue.peek(2)] == ["b", "a"]
    assert (await queue.stats()).ready == 2


async def test_get_shows_a_message_as_it_is(queue, clock):
    accepted = await queue.enqueue(
        {"a": 1}, priority=3, delay_ms=10, ttl_ms=50, dedup_key="k", headers={"h": "v"}, concurrency_key="c"
    )
    seen = await queue.get(accepted.id)

    assert (seen.id, seen.state, seen.payload, seen.body) == (accepted.id, "delayed", {"a": 1}, b'{"a":1}')
    assert (seen.priority, seen.group, seen.concurrency_key, seen.dedup_key) == (3, None, "c", "k")
    assert (seen.headers, seen.content_type) == ({"h": "v"}, "application/json")
    assert (seen.enqueued_at, seen.available_at, seen.expires_at) == (
        clock.now,
        clock.now + 10,
        clock.now + 50,
    )
    assert (seen.receives, seen.attempts, seen.history, seen.origin_id) == (0, 0, (), None)
    assert (seen.holder, seen.lease_expires_at, seen.reason, seen.error) == (None, None, None, None)


async def test_get_shows_the_lease_of_a_leased_message(queue):
    await queue.enqueue(b"x")
    [message] = await queue.receive()
    assert (await queue.get(message)).lease_expires_at == message.lease_expires_at


@pytest.mark.parametrize("verb", ["get", "explain", "delete"])
async def test_a_message_that_is_not_there_is_not_found(queue, verb):
    accepted = await queue.enqueue(b"x")
    await queue.delete(accepted.id)
    with pytest.raises(hq.MessageNotFound):
        await getattr(queue, verb)(accepted.id)


async def test_explain_says_why_a_message_waits_and_names_who_is_before_it(queue, clock):
    first = await queue.enqueue("first", group="g")
    second = await queue.enqueue("second", group="g")
    assert (await queue.explain(first.id)).blockers == ()

    [message] = await queue.receive(holder="worker-1")
    explanation = await queue.explain(second.id)

    assert explanation.state == "ready"
    assert explanation.blockers[0] == hq.Blocker(
        "group_leased", message.lease_expires_at, first.id, "worker-1"
    )


async def test_browsing_goes_on_after_the_last_of_a_page(queue):
    await queue.enqueue_many([str(number) for number in range(5)])
    pages, after = [], None
    while page := await queue.browse(after=after, limit=2):
        pages.append([seen.payload for seen in page])
        after = page[-1]
    assert pages == [["0", "1"], ["2", "3"], ["4"]]


async def test_dead_letters_are_browsed_apart(queue):
    await queue.enqueue_many(["a", "b", "c"])
    for message in await queue.receive(2):
        await message.fail(error=message.payload)

    first, second = await queue.dead_letters()
    assert [first.error, second.error] == ["a", "b"]
    assert await queue.dead_letters(after=first.id) != []
    assert [seen.payload for seen in await queue.browse()] == ["c"]


async def test_purge_takes_out_all_but_the_dead_letters(queue):
    await queue.enqueue_many(["a", "b", "c"])
    [message] = await queue.receive()
    await message.fail()

    assert await queue.purge() == 2
    assert await queue.browse() == []
    assert len(await queue.dead_letters()) == 1
    assert await queue.purge_dead_letters() == 1
    assert await queue.dead_letters() == []


async def test_a_paused_queue_accepts_and_hands_nothing_out(queue):
    await queue.pause("deploying")
    await queue.enqueue(b"x")
    assert (await queue.receive(), (await queue.stats()).paused) == ([], "deploying")

    await queue.resume()
    assert len(await queue.receive()) == 1


async def test_a_paused_group_is_passed_over(queue):
    await queue.enqueue_many([hq.Outgoing("a", group="a"), hq.Outgoing("b", group="b")])
    await queue.pause_group("a", "looking into it")
    assert [message.payload for message in await queue.receive(10)] == ["b"]

    await queue.resume_group("a")
    assert [message.payload for message in await queue.receive(10)] == ["a"]


async def test_stats_count(queue):
    await queue.enqueue_many(["a", "b", hq.Outgoing("c", delay_ms=1)])
    await queue.receive()
    stats = await queue.stats()
    assert (stats.ready, stats.delayed, stats.leased, stats.enqueued) == (1, 1, 1, 3)


async def test_a_system_says_what_an_answer_survives(system, place):
    assert await system.ready() == ("power" if place in {"sqlite", "socket"} else "nothing")


async def test_a_system_reads_all_it_has_and_finds_no_damage(system, place, queue):
    await queue.enqueue("intact")
    facts, damage = await system.examine()
    assert facts["backend"] == ("sqlite" if place in {"sqlite", "socket"} else "memory")
    assert damage == []
    with pytest.raises(hq.InvalidInput):
        await system.examine(0)


async def test_the_store_of_a_queue_is_compacted_and_that_of_none_is_not(system, queue):
    await queue.compact()
    with pytest.raises(hq.QueueNotFound):
        await system.queue("none").compact()
