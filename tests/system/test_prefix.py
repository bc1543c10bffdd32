"""Receiving from all queues under a prefix."""

import anyio
import pytest

import hq


@pytest.fixture
async def queues(system):
    return [await system.create_queue(name) for name in ("mail.a", "mail.b", "mails")]


async def test_the_queues_under_a_prefix_take_turns(system, queues):
    for queue in queues:
        await queue.enqueue_many([queue.name, queue.name])

    served = [await system.receive_under("mail") for _ in range(5)]

    assert [[message.payload for message in messages] for messages in served] == [
        ["mail.a"],
        ["mail.b"],
        ["mail.a"],
        ["mail.b"],
        [],
    ]


async def test_a_message_knows_its_queue_and_settles_itself(system, queues):
    accepted = await queues[1].enqueue("x")

    [message] = await system.receive_under("mail", 10, lease_ms=5_000, holder="worker-1")

    assert (message.id, message.queue.name) == (accepted.id, "mail.b")
    assert (await queues[1].get(message)).holder == "worker-1"
    await message.extend()
    async with message:
        pass
    assert (await queues[1].stats()).completed == 1


async def test_a_whole_batch_comes_from_one_queue(system, queues):
    for queue in queues:
        await queue.enqueue_many(["x"] * 3)
    received = await system.receive_under("", 100)
    assert [message.queue.name for message in received] == ["mail.a"] * 3


async def test_it_waits_for_any_of_the_queues(system, queues):
    received = []

    async def wait():
        received.extend(await system.receive_under("mail", wait_ms=60_000))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        await queues[1].enqueue("late")

    assert [message.payload for message in received] == ["late"]


async def test_it_waits_no_longer_than_it_said(system, queues, clock):
    received = []

    async def wait():
        received.append(await system.receive_under("mail", wait_ms=1_000))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        assert received == []
        clock.advance(1_000)

    assert received == [[]]


async def test_nothing_is_under_a_prefix_without_queues(system, queues):
    assert await system.receive_under("mai") == []


async def test_a_receive_that_was_cancelled_takes_nothing(system, queues):
    with anyio.CancelScope() as gone:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: system.receive_under("mail", wait_ms=60_000))
            await anyio.wait_all_tasks_blocked()
            gone.cancel()
    await queues[0].enqueue("x")

    [message] = await queues[0].receive()
    assert message.receives == 1


async def test_who_waits_when_the_system_is_closed_gets_nothing(system, queues):
    received = []

    async def wait():
        received.append(await system.receive_under("mail", wait_ms=60_000))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        await system.close()
    assert received == [[]]


@pytest.mark.parametrize(
    "wrong",
    [{"prefix": 5}, {"prefix": "a..b"}, {"prefix": "mail."}, {"limit": 0}, {"wait_ms": -1}, {"lease_ms": -1}],
)
async def test_what_makes_no_sense_is_refused(system, queues, wrong):
    with pytest.raises(hq.InvalidInput):
        await system.receive_under(**{"prefix": "mail", **wrong})
