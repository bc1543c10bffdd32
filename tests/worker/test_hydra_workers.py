"""The scenarios hydra-mq tests itself with, Y9 to Y14, by the rules of hq."""

import anyio
import pytest

import hq


async def test_y9_a_prefix_ends_at_a_dot(system):
    queue = await system.create_queue("a.b.c")
    await queue.enqueue("x")
    assert await system.receive_under("a.x") == []
    # hydra's `a.` is no name here.
    with pytest.raises(hq.InvalidInput):
        await system.receive_under("a.")
    [message] = await system.receive_under("a.b")
    assert (message.queue.name, message.payload) == ("a.b.c", "x")


async def test_y10_by_priority_then_by_age_and_those_without_last(queue):
    for number, priority in enumerate((None, 1, 10, None, 10, -5)):
        await queue.enqueue(number, priority=priority)
    assert [message.payload for message in await queue.receive(10)] == [2, 4, 1, 5, 0, 3]


async def told_of(system, queue, worker, settled):
    """The names hydra has for what happened to the queue's message, in order."""
    names = []
    async with queue.events() as events, worker.running(system):
        await queue.enqueue("x")
        with anyio.fail_after(5):
            while settled not in names:
                names += (await anext(events)).hydra
    return names


async def test_y11_a_handler_that_fails_twice_succeeds_the_third_time(system, worker, clock):
    queue = await system.create_queue("jobs", max_attempts=3)
    seen = []

    @worker.handle("jobs")
    async def handle(message):
        seen.append(message.attempts)
        if message.attempts < 3:
            await message.retry(delay_ms=0)

    names = await told_of(system, queue, worker, "MESSAGE_PROCESSED")
    assert seen == [1, 2, 3]
    assert names == [
        "MESSAGE_DEQUEUED", "MESSAGE_LOCKED", "MESSAGE_UNLOCKED",
        "MESSAGE_DEQUEUED", "MESSAGE_LOCKED", "MESSAGE_UNLOCKED",
        "MESSAGE_DEQUEUED", "MESSAGE_PROCESSED",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "told"), [(ValueError("wrong"), "ValueError: wrong"), (hq.Fail("enough"), "enough")]
)
async def test_y12_y13_the_last_attempt_leaves_a_dead_letter_with_its_error(system, worker, error, told):
    queue = await system.create_queue("jobs", max_attempts=1)

    @worker.handle("jobs")
    async def handle(message):
        raise error

    names = await told_of(system, queue, worker, "MESSAGE_EXPIRED")
    [letter] = await queue.dead_letters()
    assert names[-2:] == ["MESSAGE_DEQUEUED", "MESSAGE_EXPIRED"]
    assert letter.error.startswith(told)


async def test_y14_a_handler_that_says_when_to_try_again_is_called_then(system, worker, clock, counts):
    queue = await system.create_queue("jobs", max_attempts=3)
    seen = []

    @worker.handle("jobs")
    async def handle(message):
        seen.append((message.attempts, clock.now))
        if message.attempts < 3:
            await message.retry(delay_ms=20)

    async with worker.running(system):
        await queue.enqueue("x")
        for _ in range(2):
            await counts(queue, delayed=1)
            clock.advance(20)
        await counts(queue, completed=1)
    start = seen[0][1]
    assert seen == [(1, start), (2, start + 20), (3, start + 40)]
