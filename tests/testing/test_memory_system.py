"""The test kit, used as an application would."""

import pytest

from hq.testing import FrozenClock, assert_empty, assert_enqueued, drain, memory_system


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def test_draining_handles_all_that_is_ready_in_order():
    async with memory_system() as system:
        queue = await system.create_queue("emails")
        for to in ("a", "b", "c"):
            await queue.enqueue({"to": to})
        sent = []

        async def send(message):
            sent.append(message.payload["to"])

        handled = await drain(queue, send)

        assert sent == ["a", "b", "c"]
        assert len(handled) == 3
        await assert_empty(queue)


async def test_draining_shows_the_error_of_a_handler_and_retries_its_message():
    async with memory_system() as system:
        queue = await system.create_queue("emails")
        await queue.enqueue("once")

        async def fail(message):
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await drain(queue, fail)

        assert (await queue.stats()).retries == 1


async def test_time_moves_when_told():
    clock = FrozenClock()
    async with memory_system(clock) as system:
        queue = await system.create_queue("emails")
        await queue.enqueue("later", delay_ms=60_000)
        assert await queue.receive() == []

        clock.advance(minutes=1)

        [message] = await queue.receive()
        assert message.payload == "later"


async def test_what_was_enqueued_is_found_by_what_it_has():
    async with memory_system() as system:
        queue = await system.create_queue("emails")
        await queue.enqueue({"to": "a"}, priority=3)

        found = await assert_enqueued(queue, payload={"to": "a"}, priority=3)

        assert found.priority == 3
        with pytest.raises(AssertionError, match="has no message"):
            await assert_enqueued(queue, payload={"to": "b"})
        with pytest.raises(AssertionError, match="not empty"):
            await assert_empty(queue)
