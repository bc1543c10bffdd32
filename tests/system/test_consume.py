"""Consuming: one message after the other, held no longer than somebody works on it."""

import gc
import logging
from functools import partial

import anyio
import pytest
from anyio.lowlevel import checkpoint

import hq
from hq.actors.node import Node
from hq.backends.memory import MemoryBackend
from hq.backends.port import Ending
from hq.system.system import Opening, embedded


@pytest.fixture
def counted(queue, until):
    """Wait until the queue's stats are these."""

    async def wait(**wanted):
        async def is_so():
            stats = await queue.stats()
            return all(getattr(stats, name) == count for name, count in wanted.items())

        await until(is_so)

    return wait


async def payloads(consumer):
    found = []
    async for message in consumer:
        async with message:
            found.append(message.payload)
    return found


async def test_everything_comes_in_order_and_is_completed(queue):
    await queue.enqueue_many([str(number) for number in range(25)])
    assert await payloads(queue.consume(concurrency=10, wait_ms=0)) == [str(number) for number in range(25)]
    assert (await queue.stats()).completed == 25


async def test_a_consumer_waits_for_what_comes(queue):
    async def produce():
        for number in range(3):
            await queue.enqueue(number)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(produce)
        found = []
        with anyio.fail_after(60):
            async for message in queue.consume():
                async with message:
                    found.append(message.payload)
                if len(found) == 3:
                    break
    assert found == [0, 1, 2]


async def test_it_ends_when_nothing_came_for_as_long_as_it_waits(queue, clock, until):
    ended = anyio.Event()

    async def consume():
        assert await payloads(queue.consume(wait_ms=1_000)) == ["a"]
        ended.set()

    await queue.enqueue("a")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(consume)

        async def is_over():
            clock.advance(100)
            return ended.is_set()

        await until(is_over)


async def test_an_error_in_a_block_retries_its_message_and_the_loop_goes_on(queue, caplog):
    await queue.enqueue_many(["bad", "good"])
    done = []
    async for message in queue.consume(wait_ms=0):
        async with message:
            if message.payload == "bad":
                raise ValueError("cannot do this")
            done.append(message.payload)

    assert done == ["good"]
    [seen] = await queue.browse()
    assert (seen.payload, seen.history[-1].error) == ("bad", "ValueError: cannot do this")
    [record] = caplog.records
    assert (record.levelno, record.queue, record.message_id) == (logging.WARNING, "emails", seen.id)
    assert record.exc_info[0] is ValueError


async def test_no_more_are_fetched_ahead_than_its_concurrency(queue):
    await queue.enqueue_many(["a", "b", "c", "d"])
    async with queue.consume(concurrency=2) as consumer:
        await anext(consumer)
        assert (await queue.stats()).leased == 2


async def test_what_was_handed_out_and_not_settled_counts(queue, counted):
    await queue.enqueue_many(["a", "b", "c"])
    async with queue.consume(concurrency=2) as consumer, anyio.create_task_group() as tasks:
        first, _second = await anext(consumer), await anext(consumer)
        third = []

        async def take():
            third.append(await anext(consumer))

        tasks.start_soon(take)
        await anyio.wait_all_tasks_blocked()
        assert third == []

        await first.complete()
        await counted(leased=2, ready=0)
    assert third[0].payload == "c"


async def test_leaving_the_loop_gives_back_what_was_not_handed_out(queue, counted):
    await queue.enqueue_many(["a", "b", "c"])
    async for message in queue.consume():
        async with message:
            break

    await counted(completed=1, ready=2, leased=0)
    assert [message.attempts for message in await queue.receive(2)] == [1, 1]


async def test_closing_a_consumer_gives_back_at_once_and_ends_it(queue):
    await queue.enqueue_many(["a", "b", "c"])
    consumer = queue.consume()
    await anext(consumer)
    await consumer.aclose()

    assert ((await queue.stats()).ready, (await queue.stats()).leased) == (2, 1)
    assert [message async for message in consumer] == []


async def test_closing_a_consumer_ends_who_waits_for_it(queue):
    consumer = queue.consume()
    async with anyio.create_task_group() as tasks:
        found = []

        async def consume():
            found.extend([message async for message in consumer])

        tasks.start_soon(consume)
        await anyio.wait_all_tasks_blocked()
        await consumer.aclose()
    assert found == []


async def test_a_cancelled_consumer_gives_back_and_releases(queue, counted):
    await queue.enqueue_many(["a", "b", "c"])
    with anyio.CancelScope() as scope:
        async for message in queue.consume():
            async with message:
                scope.cancel()
                await checkpoint()

    await counted(ready=3, leased=0)
    assert [message.attempts for message in await queue.receive(3)] == [1, 1, 1]


@pytest.mark.parametrize("steps", range(10))
async def test_a_consumer_cancelled_at_any_moment_of_its_wait_leaves_nothing_leased(queue, counted, steps):
    taken = []

    async def consume():
        taken.extend([await anext(queue.consume())])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(consume)
        await anyio.wait_all_tasks_blocked()
        await queue.enqueue(b"x")
        for _ in range(steps):
            await checkpoint()
        tasks.cancel_scope.cancel()

    await counted(leased=len(taken), ready=1 - len(taken))


@pytest.mark.parametrize("steps", range(10))
async def test_a_consumer_closed_at_any_moment_of_its_wait_leaves_nothing_leased(queue, counted, steps):
    consumer = queue.consume()
    taken = []
    async with anyio.create_task_group() as tasks:

        async def consume():
            taken.extend([message async for message in consumer])

        tasks.start_soon(consume)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(queue.enqueue, b"x")
        for _ in range(steps):
            await checkpoint()
        await consumer.aclose()

    await counted(leased=len(taken), ready=1 - len(taken))


async def test_several_tasks_share_a_consumer_and_each_message_goes_to_one(queue):
    await queue.enqueue_many(list(range(20)))
    found = []
    async with queue.consume(concurrency=4, wait_ms=0) as consumer, anyio.create_task_group() as tasks:

        async def work():
            async for message in consumer:
                async with message:
                    await checkpoint()
                    found.append(message.payload)

        for _ in range(4):
            tasks.start_soon(work)
    assert sorted(found) == list(range(20))


async def test_a_lease_is_renewed_at_a_third_of_its_time_while_its_block_runs(queue, clock, until):
    await queue.enqueue_many(["a", "b"])
    async for message in queue.consume(wait_ms=0, lease_ms=30_000):
        async with message:
            for _ in range(6):
                clock.advance(10_000)

                async def is_renewed(message=message):
                    return message.lease_expires_at == clock.now + 30_000

                await until(is_renewed)

    stats = await queue.stats()
    assert (stats.completed, stats.lapses) == (2, 0)


async def test_a_lease_is_not_renewed_before_a_third_of_its_time(queue, clock):
    await queue.enqueue("a")
    async for message in queue.consume(wait_ms=0, lease_ms=30_000):
        async with message:
            before = message.lease_expires_at
            clock.advance(9_999)
            await anyio.wait_all_tasks_blocked()
            assert message.lease_expires_at == before


async def test_a_lease_that_could_not_be_renewed_marks_its_message_lost(queue, clock, until, caplog):
    await queue.enqueue("a")
    async for message in queue.consume(wait_ms=0):
        async with message:
            await queue.delete(message.id)
            clock.advance(10_000)

            async def is_lost(message=message):
                return message.lost

            await until(is_lost)
    assert [record.getMessage() for record in caplog.records] == ["a completed message was no longer held"]


class Stumbling(MemoryBackend):
    """Storage that can refuse to write for a while."""

    refusing = False

    async def append(self, batches):
        if self.refusing:
            return [Ending.REFUSED for _ in batches]
        return await super().append(batches)


async def test_a_bad_moment_of_storage_does_not_lose_a_lease(clock, until):
    backend = Stumbling()

    async def opened():
        return backend

    async with Opening(embedded(opened, partial(Node, clock=clock))) as system:
        queue = await system.create_queue("emails")
        await queue.enqueue("a")
        async for message in queue.consume(wait_ms=0, lease_ms=30_000):
            async with message:
                backend.refusing = True
                clock.advance(10_000)
                await anyio.wait_all_tasks_blocked()
                assert message.lease_expires_at == clock.now + 20_000

                backend.refusing = False
                clock.advance(7_000)

                async def is_renewed(message=message):
                    return message.lease_expires_at == clock.now + 30_000

                await until(is_renewed)
        assert (await queue.stats()).completed == 1


async def test_storage_that_stays_away_loses_the_lease_when_its_time_is_over(clock, until):
    backend = Stumbling()

    async def opened():
        return backend

    async with Opening(embedded(opened, partial(Node, clock=clock))) as system:
        queue = await system.create_queue("emails")
        await queue.enqueue("a")
        message = await anext(queue.consume(lease_ms=30_000))
        backend.refusing = True

        async def is_lost():
            clock.advance(1_000)
            return message.lost

        await until(is_lost)
        backend.refusing = False


async def test_a_message_dropped_without_a_word_is_not_kept_for_ever(queue, clock):
    await queue.enqueue_many(["a", "b"])
    async with queue.consume(concurrency=1) as consumer:
        assert (await anext(consumer)).payload == "a"
        gc.collect()
        assert (await anext(consumer)).payload == "b"
        clock.advance(30_000)
        await anyio.wait_all_tasks_blocked()
    assert [message.attempts for message in await queue.receive(2)] == [2, 2]


async def test_messages_received_by_hand_are_not_renewed(queue, clock):
    await queue.enqueue("a")
    [message] = await queue.receive()
    clock.advance(30_000)
    await anyio.wait_all_tasks_blocked()
    assert message.lease_expires_at == clock.now
    with pytest.raises(hq.LeaseExpired):
        await message.release()


async def test_closing_the_system_ends_a_consumer_and_gives_back(tmp_path):
    async with hq.open(tmp_path / "hq.db") as system:
        queue = await system.create_queue("emails")
        await queue.enqueue_many(["a", "b"])
        async for message in queue.consume():
            await message.complete()
            await system.close()

    async with hq.open(tmp_path / "hq.db") as system:
        [message] = await system.queue("emails").receive()
    assert (message.payload, message.attempts) == ("b", 1)


async def test_a_consumer_of_a_queue_that_is_not_there_is_told(system):
    with pytest.raises(hq.QueueNotFound):
        await anext(system.queue("nobody").consume())


@pytest.mark.parametrize(
    "wrong", [{"concurrency": 0}, {"wait_ms": -1}, {"lease_ms": 0}, {"concurrency": 1_001}]
)
async def test_bad_terms_are_refused_at_once(queue, wrong):
    with pytest.raises(hq.InvalidInput):
        queue.consume(**wrong)


async def test_the_holder_of_a_consumer_is_seen(queue):
    await queue.enqueue("a")
    async with queue.consume(holder="worker-1") as consumer:
        message = await anext(consumer)
        assert (await queue.get(message)).holder == "worker-1"
