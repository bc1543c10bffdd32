"""What the test kit gives to applications: fixtures, a worker drained by hand, and readable refusals."""

import json
from urllib.request import Request, urlopen

import pytest

import hq
from hq.testing import assert_enqueued, assert_not_enqueued, drain_worker

pytest_plugins = ["pytester"]


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def test_a_worker_is_drained_in_the_same_order_every_time(hq_system):
    worker = hq.Worker()
    order = []

    @worker.task("first")
    async def first(n: int):
        order.append(("first", n))
        await second.enqueue(n)

    @worker.task("second")
    def second(n: int):
        order.append(("second", n))
        if n == 2:
            raise hq.Fail("no two")

    worker.attach(hq_system)
    await worker.prepare(hq_system)
    for n in (1, 2):
        await first.enqueue(n)

    handled = await drain_worker(worker, hq_system)

    assert order == [("first", 1), ("second", 1), ("first", 2), ("second", 2)]
    assert [(one.verdict, one.error) for one in handled][-1] == ("failed", "no two")
    assert [letter.error for letter in await hq_system.queue("second").dead_letters()] == ["no two"]


async def test_draining_stops_at_its_limit(hq_system):
    worker = hq.Worker()

    @worker.task("again")
    async def again():
        await again.enqueue()

    await worker.prepare(hq_system)
    await again.enqueue()
    assert len(await drain_worker(worker, hq_system, limit=5)) == 5


async def test_time_moves_when_told(hq_system, hq_clock):
    queue = await hq_system.create_queue("emails")
    await queue.enqueue("later", delay_ms=60_000)
    hq_clock.advance(minutes=1)
    assert [message.payload for message in await queue.receive()] == ["later"]


async def test_a_missing_message_is_told_with_what_comes_closest(hq_system):
    queue = await hq_system.create_queue("emails")
    await queue.enqueue({"to": "a"}, priority=3)
    await queue.enqueue({"to": "b"}, priority=4)

    with pytest.raises(AssertionError) as refused:
        await assert_enqueued(queue, payload={"to": "b"}, priority=3, group=None)

    lines = str(refused.value).splitlines()
    assert lines[0] == "emails has no message with payload={'to': 'b'}, priority=3, group=None"
    assert lines[2] == "    payload: {'to': 'a'}"
    assert lines[4] == "    priority: 4"
    await assert_not_enqueued(queue, payload="c")
    with pytest.raises(AssertionError, match="has a message with priority=4"):
        await assert_not_enqueued(queue, priority=4)


def test_a_real_server_is_reached_from_a_test_without_a_loop(hq_server):
    with hq.blocking.open(hq_server) as system:
        queue = system.create_queue("emails")
        with urlopen(Request(f"{hq_server}/queues/emails/enqueue", b'{"to": "ada"}')) as response:  # noqa: S310 - of this test
            told = json.load(response)
        [message] = queue.receive()
        assert (message.id, message.payload) == (told["id"], {"to": "ada"})
        message.complete()


async def test_each_test_has_a_server_of_its_own(hq_server):
    async with hq.open(hq_server) as system:
        assert await system.queues() == []
        queue = await system.create_queue("emails")
        await queue.enqueue("x")
        [message] = await queue.receive(wait_ms=1_000)
        assert message.payload == "x"


@pytest.mark.slow
def test_the_fixtures_are_there_for_applications(pytester):
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.anyio
        async def test_it(hq_system, hq_clock):
            queue = await hq_system.create_queue("q")
            await queue.enqueue("x", delay_ms=5)
            hq_clock.advance(5)
            assert len(await queue.receive()) == 1

        @pytest.fixture
        def anyio_backend():
            return "asyncio"
        """
    )
    pytester.runpytest_subprocess("-W", "error").assert_outcomes(passed=1)
