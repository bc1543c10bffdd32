"""One byte budget for all queues: short memory slows, memory that cannot be freed refuses enqueue alone."""

import asyncio

import anyio
import pytest

from hq.actors.limits import MESSAGE_BYTES
from hq.backends.memory import MemoryBackend
from hq.domain.commands import Complete, Count, Enqueue, Get, Peek, Receive
from hq.domain.messages import Options
from hq.domain.settings import Settings
from hq.errors import MemoryFull
from tests.actors.test_node import settle

ROOM = 20
MEMORY_BYTES = ROOM * MESSAGE_BYTES


class SlowBackend(MemoryBackend):
    """The memory backend, whose checkpoints wait while it is told to hold them."""

    def __init__(self) -> None:
        super().__init__()
        self._gate = anyio.Event()
        self._gate.set()

    def hold(self) -> None:
        self._gate = anyio.Event()

    def let_go(self) -> None:
        self._gate.set()

    async def checkpoint(self, queue, chunk, wake_at) -> None:
        await self._gate.wait()
        await super().checkpoint(queue, chunk, wake_at)


@pytest.fixture
def backend():
    return SlowBackend()


@pytest.fixture
async def tight(new_node):
    """A node with room for few messages, and two queues."""
    async with new_node(memory_bytes=MEMORY_BYTES) as node:
        for name in ("jobs", "others"):
            await node.create(name, Settings())
        yield node


def post(node, name, *commands):
    """Hand all over at once."""
    number = node.number(name)
    return [node.post(number, command) for command in commands]


async def answers(replies):
    with anyio.fail_after(10):
        return await asyncio.gather(*replies)


def numbered(count):
    return [Enqueue(b"%d" % number) for number in range(count)]


async def received(node, name):
    """The payloads of all there is, completed one by one."""
    payloads = []
    while deliveries := await node.receive(name, Receive(), 0):
        [delivery] = deliveries
        await node.ask(name, Complete(delivery.message, delivery.token))
        payloads.append(delivery.payload)
    return payloads


async def fill_with_leases(node):
    """Enqueue and receive until memory takes no more; what is held. One message is left to receive."""
    held = []
    await node.ask("jobs", Enqueue(b"left"))
    for _ in range(10 * ROOM):
        try:
            await node.ask("jobs", Enqueue(b"held"))
        except MemoryFull:
            return held
        held += await node.receive("jobs", Receive(), 0)
    raise AssertionError("memory takes everything")


async def complete(node, held):
    for delivery in held:
        await node.ask("jobs", Complete(delivery.message, delivery.token))


async def test_far_more_than_memory_holds_is_taken_in_and_comes_out_in_order(tight):
    await answers(post(tight, "jobs", *numbered(10 * ROOM)))

    assert await received(tight, "jobs") == [b"%d" % number for number in range(10 * ROOM)]


async def test_who_enqueues_more_than_memory_holds_waits_until_storage_has_it(tight, backend):
    backend.hold()
    replies = post(tight, "jobs", *numbered(2 * ROOM))
    await settle()
    taken = [reply for reply in replies if reply.done()]
    assert 0 < len(taken) <= ROOM

    backend.let_go()

    await answers(replies)


async def test_memory_full_of_leases_refuses_enqueue_and_nothing_else(tight):
    held = await fill_with_leases(tight)
    assert len(held) > ROOM // 2

    for name in ("jobs", "others"):
        with pytest.raises(MemoryFull):
            await tight.ask(name, Enqueue(b"more"))
    assert (await tight.ask("jobs", Count())).leased == len(held)
    assert (await tight.ask("jobs", Get(held[0].message))).state == "leased"
    [seen] = await tight.ask("jobs", Peek())
    [delivery] = await tight.receive("jobs", Receive(), 0)
    assert delivery.message == seen.message.sequence
    await complete(tight, [*held, delivery])
    assert (await tight.ask("jobs", Count())).leased == 0


@pytest.mark.parametrize("name", ["jobs", "others"])
async def test_enqueue_works_again_once_the_leases_are_completed(tight, name):
    held = await fill_with_leases(tight)

    await complete(tight, held)

    await tight.ask(name, Enqueue(b"more"))


async def test_an_enqueue_is_refused_though_a_waiting_receive_keeps_reading_what_is_blocked(tight):
    await answers(post(tight, "jobs", *[Enqueue(b"work", Options(group="one"))] * 2))
    [first] = await tight.receive("jobs", Receive(), 0)
    await fill_with_leases(tight)
    await tight.receive("jobs", Receive(), 0)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tight.receive, "jobs", Receive(), 10_000)
        await settle()
        enqueue, settled = post(tight, "jobs", Enqueue(b"more"), Complete(first.message, first.token))
        await settle()

        assert isinstance(enqueue.exception(), MemoryFull)
        assert settled.result().state == "completed"


async def test_a_queue_that_finds_memory_used_by_another_gets_room_when_that_is_pressed(tight, backend):
    backend.hold()
    await answers(post(tight, "others", *numbered(ROOM)))
    [reply] = post(tight, "jobs", Enqueue(b"work"))
    await settle()
    assert not reply.done()

    backend.let_go()

    await answers([reply])
    assert await received(tight, "jobs") == [b"work"]
    assert await received(tight, "others") == [b"%d" % number for number in range(ROOM)]
