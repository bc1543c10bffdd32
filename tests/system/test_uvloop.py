"""The embedded API is the same on uvloop, which many servers run on."""

import asyncio

import anyio
import pytest
import uvloop

import hq


@pytest.fixture
def anyio_backend():
    return "asyncio", {"use_uvloop": True}


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/hq.db"


async def test_a_message_goes_its_whole_way_on_uvloop(url):
    assert isinstance(asyncio.get_running_loop(), uvloop.Loop)
    received = []

    async def receive(queue):
        received.extend(await queue.receive(wait_ms=60_000))

    with anyio.fail_after(30):
        async with hq.open(url) as system:
            queue = await system.create_queue("emails")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(receive, queue)
                await anyio.wait_all_tasks_blocked()
                await queue.enqueue("first")
            [message] = received
            await message.complete()

            await queue.enqueue_many(["second", "third"])
            async for message in queue.consume(wait_ms=1):
                async with message:
                    received.append(message)

        async with hq.open(url) as system:
            stats = await system.queue("emails").stats()

    assert [message.payload for message in received] == ["first", "second", "third"]
    assert (stats.completed, stats.ready, stats.leased) == (3, 0, 0)


async def test_a_system_that_is_closed_ends_its_consumers_on_uvloop(url):
    async def consume(queue):
        async for message in queue.consume():
            async with message:
                pass

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks, hq.open(url) as system:
            queue = await system.create_queue("emails")
            tasks.start_soon(consume, queue)
            await anyio.wait_all_tasks_blocked()

    with pytest.raises(hq.Closed):
        await queue.enqueue("late")
