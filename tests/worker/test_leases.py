"""What a worker holds: leases renewed while it works, given back when it stops, bounded always."""

from types import SimpleNamespace

import anyio
import pytest
from anyio.lowlevel import checkpoint

import hq
from hq.worker.crew import GIVE_BACK_S


@pytest.fixture
def busy(worker):
    """A worker whose handler works until told; what it saw."""
    busy = SimpleNamespace(begun=[], ended=[], go=anyio.Event())

    @worker.handle("emails", concurrency=2)
    async def send(message):
        busy.begun.append(message.payload)
        try:
            await busy.go.wait()
        except anyio.get_cancelled_exc_class():
            busy.ended.append("cancelled")
            raise
        busy.ended.append("done")

    return busy


async def test_a_lease_is_renewed_as_long_as_its_handler_works(system, queue, worker, busy, counts, clock):
    async with worker.running(system):
        accepted = await queue.enqueue("slow")
        await counts(queue, leased=1)
        for _ in range(20):
            before = (await queue.get(accepted.id)).lease_expires_at
            clock.advance(10_000)  # a third of the lease
            with anyio.fail_after(60):
                while (await queue.get(accepted.id)).lease_expires_at == before:
                    await checkpoint()
        busy.go.set()
        await counts(queue, completed=1, lapses=0)

    assert busy.begun == ["slow"]


async def test_a_handler_that_outlives_its_lease_is_cancelled(
    system, queue, worker, busy, counts, clock, until
):
    async with worker.running(system):
        await queue.enqueue("slow")
        await counts(queue, leased=1)
        clock.advance(30_000)  # all of it at once: nobody could renew

        async def again():
            return busy.begun == ["slow", "slow"] and busy.ended == ["cancelled"]

        await until(again)
        busy.go.set()
        await counts(queue, completed=1, lapses=1)

    assert busy.ended == ["cancelled", "done"]


async def test_a_handler_whose_message_is_deleted_is_cancelled(
    system, queue, worker, busy, counts, clock, until
):
    async with worker.running(system):
        accepted = await queue.enqueue("unwanted")
        await counts(queue, leased=1)
        await queue.delete(accepted.id)
        clock.advance(10_000)

        async def cancelled():
            return busy.ended == ["cancelled"]

        await until(cancelled)


async def test_no_more_is_handled_at_once_than_concurrency_says(system, queue, worker, busy, counts):
    async with worker.running(system):
        await queue.enqueue_many(list(range(5)))
        await counts(queue, leased=2, ready=3)
        await anyio.wait_all_tasks_blocked()
        assert busy.begun == [0, 1]
        busy.go.set()
        await counts(queue, completed=5)


async def test_a_handler_that_is_cancelled_takes_no_hand_with_it(system, queue, worker, clock, counts):
    begun = []

    @worker.handle("emails", concurrency=1, timeout_ms=None)
    async def send(message):
        begun.append(message.payload)
        if message.payload == "lost":
            await anyio.sleep_forever()

    async with worker.running(system):
        lost = await queue.enqueue("lost")
        await counts(queue, leased=1)
        await queue.enqueue("next")
        await queue.delete(lost.id)
        clock.advance(30_000 // 3)
        await counts(queue, completed=1)
    assert begun == ["lost", "next"]


async def test_what_is_fetched_ahead_is_bounded_and_given_back_at_stop(system, queue, worker, counts):
    begun, go = [], anyio.Event()

    @worker.handle("emails", concurrency=1, prefetch=2)
    async def send(message):
        begun.append(message.payload)
        await go.wait()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run, system)
        await queue.enqueue_many(list(range(5)))
        await counts(queue, leased=3, ready=2)
        worker.stop()
        await counts(queue, leased=1, ready=4)
        go.set()

    stats = await queue.stats()
    assert (begun, stats.completed, stats.ready) == ([0], 1, 4)
    assert [message.attempts for message in await queue.receive(4)] == [1, 1, 1, 1]


async def test_a_stop_waits_for_work_in_hand_but_not_for_ever(system, queue, counts):
    worker = hq.Worker(grace_ms=1)

    @worker.handle("emails")
    async def send(message):
        await anyio.sleep_forever()

    with anyio.fail_after(GIVE_BACK_S / 2):
        async with worker.running(system):
            await queue.enqueue("endless")
            await counts(queue, leased=1)

    [message] = await queue.receive()
    assert (message.receives, message.attempts) == (2, 1)


async def test_a_cancelled_worker_gives_back_what_it_has(system, queue, worker, busy, counts):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run, system)
        await queue.enqueue("slow")
        await counts(queue, leased=1)
        tasks.cancel_scope.cancel()

    assert (await queue.stats()).ready == 1
    assert busy.ended == ["cancelled"]


async def test_messages_of_a_group_are_handled_one_after_the_other(system, queue, counts):
    worker = hq.Worker(concurrency=4)
    running, together, order = [], [], []

    @worker.handle("emails")
    async def send(message):
        running.append(message.group)
        together.append(sorted(running))
        await checkpoint()
        order.append((message.group, message.payload))
        running.remove(message.group)

    for n in range(3):
        for group in ("a", "b"):
            await queue.enqueue(n, group=group)
    async with worker.running(system):
        await counts(queue, completed=6)

    assert [pair for pair in together if len(set(pair)) != len(pair)] == []
    assert [n for group, n in order if group == "a"] == [0, 1, 2]


async def test_none_overtakes_a_message_of_its_group_that_is_to_be_tried_again(system, queue, counts, clock):
    worker = hq.Worker(concurrency=4)
    order = []

    @worker.handle("emails")
    async def send(message):
        order.append(message.payload)
        if message.payload == "first" and message.attempts == 1:
            raise hq.Retry(delay_ms=1_000)

    await queue.enqueue("first", group="a")
    await queue.enqueue("second", group="a")
    async with worker.running(system):
        await counts(queue, retries=1, leased=0)
        clock.advance(1_000)
        await counts(queue, completed=2)

    assert order == ["first", "first", "second"]


async def test_a_worker_is_alive_as_long_as_it_fetches(system, queue, worker, busy, counts):
    assert not worker.is_alive()
    async with worker.running(system):
        assert worker.is_alive()
        with anyio.fail_after(60):
            # Nothing was fetched since: the clock of the store stands still, and so does the fetch.
            while worker.is_alive(within_ms=1):
                await checkpoint()
        await queue.enqueue_many([1, 2])
        await counts(queue, leased=2)
        # It has all it may hold, so it need not fetch.
        assert worker.is_alive(within_ms=0)
        busy.go.set()
    assert not worker.is_alive()


async def test_a_worker_runs_once_at_a_time(system, worker, busy):
    async with worker.running(system):
        with pytest.raises(hq.InvalidInput, match="runs already"):
            await worker.run(system)
