"""A server that restarts under its client: nothing is lost, nothing comes twice, and consumers go on."""

from contextlib import asynccontextmanager

import anyio

import hq
from hq.http.calls import Api, Terms
from tests.client.relay import relayed
from tests.http.ways import served


@asynccontextmanager
async def server(file):
    async with (
        hq.open(file, access="exclusive") as system,
        served("hypercorn", Api(system.line, Terms()), grace_s=0.5) as address,
    ):
        yield address


async def test_consumers_and_producers_go_on_when_their_server_restarts(tmp_path):
    file = tmp_path / "hq.db"
    worked, accepted = [], []
    async with server(file) as address:
        first = int(address.rpartition(":")[2])
    async with relayed(f"http://127.0.0.1:{first}") as (relay, way):
        opened, done = anyio.Event(), anyio.Event()

        async def consume(queue):
            async for message in queue.consume():
                async with message:
                    worked.append(message.payload)
                if len(worked) == 20:
                    break

        async def use():
            async with hq.open(way) as system, anyio.create_task_group() as tasks:
                queue = await system.create_queue("emails")
                tasks.start_soon(consume, queue)
                for number in range(20):
                    accepted.append(await queue.enqueue(number))
                    if number == 5:
                        opened.set()
            done.set()

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                async with server(file) as address:
                    relay.port = int(address.rpartition(":")[2])
                    tasks.start_soon(use)
                    await opened.wait()
                async with server(file) as address:
                    relay.port = int(address.rpartition(":")[2])
                    await done.wait()
    assert sorted(worked) == list(range(20))
    assert not any(one.duplicate for one in accepted)


async def test_events_resume_where_they_broke_off(tmp_path):
    file = tmp_path / "hq.db"
    async with server(file) as address, relayed(address) as (relay, way), hq.open(way) as system:
        queue = await system.create_queue("emails")
        async with queue.events(kinds=["enqueued"]) as events:
            accepted = [await queue.enqueue(number) for number in range(3)]
            told = [(await anext(events)).message_id]
            relay.answers_to_lose = 1
            accepted.append(await queue.enqueue("the answer of this is lost, or a part of the stream"))
            with anyio.fail_after(10):
                told += [(await anext(events)).message_id for _ in range(3)]
    assert told == [one.id for one in accepted]
