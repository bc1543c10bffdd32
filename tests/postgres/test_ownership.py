"""A queue has one owner at a time, and a former owner writes nothing and answers nothing."""

from contextlib import nullcontext
from time import time

import anyio
import pytest

from hq.actors.node import Node
from hq.backends.port import Batch, Ending
from hq.backends.postgres import Limits, PostgresBackend, Shape, Term
from hq.backends.postgres.connections import Place, connect, engine_for
from hq.backends.postgres.ownership import check_clock
from hq.backends.postgres.schema import Schema
from hq.domain.checkpoint import Chunk
from hq.domain.commands import Count, Enqueue, Receive
from hq.domain.events import Claimed, Resumed
from hq.domain.settings import Settings
from hq.errors import ClockOff, DatabaseInUse, NotOwner
from tests.postgres.conftest import SHORT


async def test_a_second_process_is_refused_while_the_first_lives(opened):
    await opened()

    with anyio.fail_after(5), pytest.raises(DatabaseInUse, match="process"):
        await opened()


async def test_a_process_that_ended_well_is_followed_at_once(opened):
    first = await opened(term=Term(time_s=600, margin_s=2))
    queue = (await first.create("jobs", Settings())).number
    await first.close()

    with anyio.fail_after(5):
        second = await opened()

    await second.load(queue)
    assert await second.append([Batch(queue, 1, [Claimed(1, 0, 1)])]) == [Ending.DURABLE]


async def test_a_process_that_lapsed_is_followed_and_writes_nothing_more(opened):
    first = await opened()
    queue = (await first.create("jobs", Settings())).number
    assert await first.append([Batch(queue, 1, [Claimed(1, 0, 1)])]) == [Ending.DURABLE]
    await first.ownership.fall_silent()

    second = await opened()
    await second.load(queue)
    claimed = await second.append([Batch(queue, 2, [Claimed(2, 0, 2)])])
    late = await first.append([Batch(queue, 1, [Resumed(2, 0)])])
    later = await first.append([Batch(queue, 1, [Resumed(3, 0)])])

    assert (claimed, late, later) == ([Ending.DURABLE], [Ending.NOT_OWNER], [Ending.NOT_OWNER])
    assert not first.owns(queue)
    assert second.owns(queue)
    assert await second.tail(queue, 0, 10) == [Claimed(1, 0, 1), Claimed(2, 0, 2)]


async def test_a_former_owner_writes_no_checkpoint_and_makes_no_queue(opened):
    first = await opened()
    queue = (await first.create("jobs", Settings())).number
    await first.ownership.fall_silent()
    second = await opened()
    await second.load(queue)

    with pytest.raises(NotOwner):
        await first.checkpoint(queue, Chunk([], [], {}, None), 77)
    with pytest.raises(DatabaseInUse):
        await first.create("other", Settings())
    with pytest.raises(NotOwner):
        await first.load(queue)
    with pytest.raises(DatabaseInUse):
        await first.check()
    assert [row.wake_at for row in await second.queues()] == [None]


async def test_a_node_that_was_stopped_gives_no_lease_and_no_answer_from_memory(opened):
    first = await opened()
    async with Node(first) as stopped:
        await stopped.create("jobs", Settings())
        await stopped.ask("jobs", Enqueue(b"work"))
        await first.ownership.fall_silent()
        second = await opened()
        async with Node(second) as node:
            [delivery] = await node.receive("jobs", Receive(), 0)
            with pytest.raises(NotOwner):
                await stopped.ask("jobs", Count())
            with pytest.raises(NotOwner):
                await stopped.receive("jobs", Receive(), 0)
            assert delivery.payload == b"work"
            assert (await node.ask("jobs", Count())).leased == 1


async def test_a_node_that_finds_its_row_gone_is_another_when_it_enters_again(opened, admin, table):
    backend = await opened()
    queue = (await backend.create("jobs", Settings())).number
    before = backend.ownership.node

    await admin.execute(f"DELETE FROM {table('nodes')}")
    with anyio.fail_after(5):
        while backend.ownership.node == before or not backend.ownership.is_sure:
            await anyio.lowlevel.checkpoint()

    assert not backend.owns(queue), "somebody else may have had it meanwhile"
    assert await backend.append([Batch(queue, 0, [Resumed(1, 0)])]) == [Ending.NOT_OWNER]
    await backend.load(queue)
    assert await backend.append([Batch(queue, 0, [Resumed(1, 0)])]) == [Ending.DURABLE]


async def test_two_that_start_at_once_are_one_owner_and_one_refused(postgres_url, postgres_schema):
    backends = [
        PostgresBackend(postgres_url, shape=Shape(schema=postgres_schema), term=SHORT) for _ in range(4)
    ]
    entered, refused = [], []

    async def enter(backend):
        try:
            await backend.open()
        except DatabaseInUse:
            refused.append(backend)
        else:
            entered.append(backend)

    async with anyio.create_task_group() as tasks:
        for backend in backends:
            tasks.start_soon(enter, backend)

    assert (len(entered), len(refused)) == (1, 3)
    await entered[0].close()


@pytest.mark.parametrize(("seconds", "refused"), [(0, False), (0.9, False), (1.5, True), (-1.5, True)])
async def test_a_clock_more_than_a_second_off_is_refused(postgres_url, seconds, refused):
    place = Place(postgres_url, Schema("unused"), Limits(), prepared=True)
    connection = await connect(engine_for(place), place)
    expected = pytest.raises(ClockOff, match="apart") if refused else nullcontext()

    with expected:
        await check_clock(connection, lambda: time() + seconds)
    await connection.close()
