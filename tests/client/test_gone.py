"""A server that is gone for longer than anybody waits: who consumes is there when it is back."""

import logging
from contextlib import contextmanager

import anyio
import pytest
from anyio.lowlevel import checkpoint

import hq

NOBODY = 1
"""A port on which nobody listens."""


@contextmanager
def logged(text):
    """Set once something is logged that has this text; how often it was."""
    event, records = anyio.Event(), []

    class Handler(logging.Handler):
        def emit(self, record):
            if text in record.getMessage():
                records.append(record)
                event.set()

    handler, logger = Handler(), logging.getLogger("hq")
    logger.addHandler(handler)
    try:
        yield event, records
    finally:
        logger.removeHandler(handler)


async def begin(relay, clock, event):
    """Take the server away, and let time pass until somebody has noticed."""
    relay.hang_up(NOBODY)
    with anyio.fail_after(20):
        while not event.is_set():
            clock.advance(minutes=2)
            with anyio.move_on_after(0.05):
                await event.wait()


async def hours_pass(clock, hours):
    for _ in range(hours * 60):
        clock.advance(minutes=1)
        await checkpoint()


async def days_pass(clock):
    while True:
        clock.advance(minutes=1)
        await checkpoint()


async def test_a_consumer_is_there_when_its_server_is_back(queue, there, relay, clock):
    port, worked, done = relay.port, [], anyio.Event()

    async def consume():
        async for message in queue.consume():
            async with message:
                worked.append(message.payload)
                done.set()

    with logged("a consumer waits for its server") as (noticed, records):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume)
            await begin(relay, clock, noticed)
            await hours_pass(clock, 5)
            relay.port = port
            await there.enqueue("late")
            with anyio.fail_after(20):
                await done.wait()
            tasks.cancel_scope.cancel()
    assert worked == ["late"]
    assert len(records) == 1


async def test_a_consumer_that_is_told_to_gives_up(queue, relay, clock):
    relay.hang_up(NOBODY)
    with logged("a consumer waits for its server") as (noticed, _), anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(days_pass, clock)
            with pytest.raises(hq.Unreachable):
                async for _ in queue.consume(give_up_ms=60 * 60_000):
                    pass
            tasks.cancel_scope.cancel()
    assert noticed.is_set()


async def test_a_worker_is_there_when_its_server_is_back(way, there, relay, clock):
    port, handled, done = relay.port, [], anyio.Event()
    worker = hq.Worker()

    @worker.handle("emails")
    async def send(message):
        handled.append(message.payload)
        done.set()

    async with hq.open(way[1], clock=clock) as system:
        with logged("a worker cannot fetch") as (noticed, records):
            async with worker.running(system):
                await begin(relay, clock, noticed)
                await hours_pass(clock, 5)
                relay.port = port
                await there.enqueue("late")
                with anyio.fail_after(20):
                    await done.wait()
    assert handled == ["late"]
    assert len(records) == 1


async def test_a_worker_that_is_told_to_gives_up_and_says_why(way, there, relay, clock):
    ended = anyio.Event()
    worker = hq.Worker(give_up_ms=60 * 60_000)

    @worker.handle("emails")
    async def send(message): ...

    async def run(system):
        with pytest.raises(hq.Unreachable):
            await worker.run(system)
        ended.set()

    async with hq.open(way[1], clock=clock) as system:
        with logged("a worker cannot fetch") as (noticed, _), anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run, system)
                await there.enqueue("first")
                # Its handler has ended, its worker knows that the queue does, and it polls again.
                while not (await there.stats()).completed:
                    await checkpoint()
                await anyio.wait_all_tasks_blocked()
                relay.hang_up(NOBODY)
                tasks.start_soon(days_pass, clock)
                await ended.wait()
                tasks.cancel_scope.cancel()
    assert noticed.is_set()


@pytest.mark.slow
@pytest.mark.parametrize("error", [None, ValueError("wrong")])
async def test_a_message_whose_end_nobody_hears_comes_back_and_the_loop_goes_on(
    queue, there, relay, clock, error
):
    port, worked, done = relay.port, [], anyio.Event()
    await there.enqueue("once")

    async def consume():
        async for message in queue.consume(concurrency=1):
            async with message:
                worked.append(message.payload)
                if len(worked) == 1:
                    relay.hang_up(NOBODY)
                    if error:
                        raise error
            if len(worked) == 2:
                done.set()

    with logged("nobody answers that a message is") as (noticed, _), anyio.fail_after(40):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume)
            await noticed.wait()
            relay.port = port
            clock.advance(hours=1)
            await done.wait()
            tasks.cancel_scope.cancel()
    assert worked == ["once", "once"]
