"""A receiver may go away at any moment; its message does not go with it."""

import asyncio

import anyio
import pytest
from anyio.lowlevel import checkpoint as breathe

from hq.domain.commands import Enqueue, Receive
from hq.domain.settings import Settings
from tests.actors.test_node import settle

MOST_STEPS = 200


async def receive_cancelled_after(node, steps, wait_ms):
    """Whether the receive was over before it could be cancelled."""
    received = []

    async def receive():
        received.extend(await node.receive("jobs", Receive(), wait_ms))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        for _ in range(steps):
            await breathe()
        tasks.cancel_scope.cancel()
    await settle()
    return bool(received)


@pytest.mark.parametrize("wait_ms", [0, 10_000])
async def test_a_receive_cancelled_at_any_await_costs_no_attempt(new_node, wait_ms):
    cancelled = 0
    async with new_node() as node:
        for steps in range(MOST_STEPS):
            await node.create("jobs", Settings())
            await node.ask("jobs", Enqueue(b"work"))
            over = await receive_cancelled_after(node, steps, wait_ms)
            if over:
                break
            cancelled += 1
            [delivery] = await node.receive("jobs", Receive(), 0)
            assert delivery.attempts == 1
            await node.drop("jobs")

    assert over
    assert cancelled > 1


@pytest.mark.parametrize("steps", range(12))
async def test_a_message_for_a_waiter_that_goes_is_for_the_next_one(new_node, steps):
    received = []

    async def receive(node):
        received.extend(await node.receive("jobs", Receive(), 10_000))

    async with new_node() as node:
        await node.create("jobs", Settings())
        async with anyio.create_task_group() as staying:
            async with anyio.create_task_group() as going:
                going.start_soon(node.receive, "jobs", Receive(), 10_000)
                await settle()
                staying.start_soon(receive, node)
                await settle()
                going.start_soon(node.ask, "jobs", Enqueue(b"first"))
                for _ in range(steps):
                    await breathe()
                going.cancel_scope.cancel()
            await node.ask("jobs", Enqueue(b"second"))

    assert len(received) == 1


def receive_from_the_queue(node):
    return node.receive("jobs.a", Receive(), 10_000)


def receive_from_any(node):
    return node.receive_under("jobs", Receive(), 10_000)


async def enqueue_two(node):
    number = node.number("jobs.a")
    await asyncio.gather(*(node.post(number, Enqueue(payload)) for payload in (b"first", b"second")))


def receive_twice(node, receive):
    """Two receives whose replies are set at once; who resumes first cancels the other, natively."""
    tasks = []

    async def receive_and_cancel():
        await receive(node)
        [other] = {*tasks} - {asyncio.current_task()}
        assert other.cancel()

    tasks += [asyncio.create_task(receive_and_cancel()) for _ in range(2)]
    return tasks


async def check_that_nothing_is_lost(node, tasks):
    endings = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(ending) for ending in endings} == {type(None), asyncio.CancelledError}
    [delivery] = await node.receive("jobs.a", Receive(), 0)
    assert (delivery.receives, delivery.attempts) == (2, 1)


@pytest.mark.parametrize("receive", [receive_from_the_queue, receive_from_any])
async def test_a_task_cancelled_when_its_reply_is_there_gives_the_message_back(node, receive):
    await node.create("jobs.a", Settings())
    await enqueue_two(node)

    tasks = receive_twice(node, receive)

    await check_that_nothing_is_lost(node, tasks)


@pytest.mark.parametrize("receive", [receive_from_the_queue, receive_from_any])
async def test_a_task_that_waited_and_is_cancelled_when_its_reply_is_there_does_so_too(node, receive):
    await node.create("jobs.a", Settings())
    tasks = receive_twice(node, receive)
    await settle()

    await enqueue_two(node)

    await check_that_nothing_is_lost(node, tasks)


async def test_who_no_longer_waits_is_not_in_the_line(new_node):
    async with new_node(waiters=2) as node, anyio.create_task_group() as tasks:
        await node.create("jobs", Settings())
        tasks.start_soon(node.receive, "jobs", Receive(), 10_000)
        for _ in range(5):
            await receive_cancelled_after(node, MOST_STEPS, 10_000)
        assert dict(node.waiting()) == {"jobs": 1}
        tasks.cancel_scope.cancel()
