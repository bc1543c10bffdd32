"""A store that refuses for a while under a worker: nothing is lost or done twice, and the worker lives."""

from functools import partial

import anyio
import pytest
from anyio.lowlevel import checkpoint

from hq.actors.node import Node
from hq.backends.memory import MemoryBackend
from hq.backends.port import Ending
from hq.system.system import Opening, embedded


class Moody(MemoryBackend):
    """Storage that refuses to write while it is told to."""

    refuses = False

    async def append(self, batches):
        if self.refuses:
            return [Ending.REFUSED for _ in batches]
        return await super().append(batches)


@pytest.fixture
def backend():
    return Moody()


@pytest.fixture
async def system(backend, clock):
    async def opened():
        return backend

    async with Opening(embedded(opened, partial(Node, clock=clock))) as system:
        yield system


async def test_a_worker_outlives_a_store_that_refuses(system, queue, worker, backend, clock):
    handled = []

    @worker.handle("emails")
    async def send(message):
        handled.append(message.payload)
        backend.refuses = message.payload == "first"

    async def tick():
        while True:
            clock.advance(10)
            await anyio.wait_all_tasks_blocked()

    async def completed(count):
        # The queue loads again by a clock that somebody must move.
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tick)
            with anyio.fail_after(20):
                while (await queue.stats()).completed < count:
                    await checkpoint()
            tasks.cancel_scope.cancel()

    async with worker.running(system):
        await queue.enqueue("first")
        with anyio.fail_after(60):
            while not handled:
                await anyio.wait_all_tasks_blocked()
        for _ in range(10):
            clock.advance(100)
            await anyio.wait_all_tasks_blocked()
        backend.refuses = False
        await completed(1)
        await queue.enqueue("second")
        await completed(2)

    assert handled == ["first", "second"]


async def test_a_worker_ends_with_its_system(system, queue, worker):
    @worker.handle("emails")
    async def send(message): ...

    with anyio.fail_after(60):
        async with worker.running(system):
            await system.close()


async def test_an_error_of_the_block_comes_out_as_itself(system, queue, worker):
    with pytest.raises(ZeroDivisionError):
        async with worker.running(system):
            raise ZeroDivisionError
