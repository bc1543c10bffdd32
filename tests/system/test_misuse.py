"""Using a system where or when it cannot work is told in one sentence, and never hangs."""

import asyncio
import subprocess
import sys
from functools import partial

import anyio
import anyio.to_thread
import pytest

import hq

AFTER_FORK = """
import asyncio, os, hq

async def told(verb):
    try:
        await verb()
    except hq.UsedAfterFork:
        return True

async def main():
    async with hq.open("memory:") as system:
        queue = await system.create_queue("emails")
        child = os.fork()
        if not child:
            verbs = [queue.stats, lambda: queue.enqueue(b"x"), system.queues, system.close]
            os._exit(0 if all([asyncio.run(told(verb)) for verb in verbs]) else 1)
        assert os.waitpid(child, 0)[1] == 0
        await queue.enqueue(b"the parent goes on")

asyncio.run(main())
"""

BLOCKING_AFTER_FORK = """
import os, hq

with hq.blocking.open("memory:") as system:
    queue = system.create_queue("emails")
    child = os.fork()
    if not child:
        try:
            queue.stats()
        except hq.UsedAfterFork:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    queue.enqueue(b"the parent goes on")
"""


def verbs_of(system, queue):
    return {
        "create_queue": partial(system.create_queue, "other"),
        "queues": system.queues,
        "delete_queue": partial(system.delete_queue, "emails"),
        "enqueue": partial(queue.enqueue, b"x"),
        "enqueue_many": partial(queue.enqueue_many, [b"x"]),
        "receive": queue.receive,
        "complete": partial(queue.complete, "00000000-0000-8000-8400-000000000002"),
        "complete many": partial(queue.complete, []),
        "stats": queue.stats,
        "settings": queue.settings,
        "receive_under": partial(system.receive_under, ""),
        "set_schedule": partial(queue.set_schedule, "s", b"x", every_ms=1),
        "schedules": queue.schedules,
        "requeue_dead_letters": queue.requeue_dead_letters,
        "move_waiting": partial(queue.move_waiting, "other"),
        "tasks": queue.tasks,
    }


VERBS = sorted(verbs_of(hq.System, hq.Queue))


@pytest.mark.parametrize("verb", VERBS)
async def test_after_it_is_closed_every_verb_says_so(system, queue, verb):
    await system.close()
    with pytest.raises(hq.Closed):
        await verbs_of(system, queue)[verb]()


async def test_after_the_block_every_verb_says_so(url):
    async with hq.open(url) as system:
        queue = await system.create_queue("emails")
    for verb in verbs_of(system, queue).values():
        with pytest.raises(hq.Closed):
            await verb()
    with pytest.raises(hq.Closed):
        queue.consume()


async def test_closing_twice_is_closing_once(system):
    await system.close()
    await system.close()


async def test_any_task_may_close_a_system(system, queue):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(system.close)
    with pytest.raises(hq.Closed):
        await queue.stats()


async def test_who_waits_when_the_system_is_closed_gets_nothing(system, queue):
    received = []
    async with anyio.create_task_group() as tasks:

        async def wait():
            received.append(await queue.receive(wait_ms=60_000))

        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        await system.close()
    assert received == [[]]


@pytest.mark.parametrize("verb", VERBS)
async def test_in_another_thread_every_verb_says_so(system, queue, verb):
    with pytest.raises(hq.UsedElsewhere):
        await anyio.to_thread.run_sync(anyio.run, verbs_of(system, queue)[verb])


def test_in_a_later_loop_of_the_thread_a_verb_says_so():
    async def opened():
        system = await hq.open("memory:").__aenter__()
        return system, await system.create_queue("emails")

    loop = asyncio.new_event_loop()
    system, queue = loop.run_until_complete(opened())

    with pytest.raises(hq.UsedElsewhere):
        asyncio.run(queue.stats())

    loop.run_until_complete(system.close())
    loop.close()


async def test_in_another_thread_a_system_is_not_closed(system, queue):
    with pytest.raises(hq.UsedElsewhere):
        await anyio.to_thread.run_sync(anyio.run, system.close)
    await queue.stats()


@pytest.mark.parametrize("program", [AFTER_FORK, BLOCKING_AFTER_FORK], ids=["async", "blocking"])
def test_in_the_child_of_a_fork_every_verb_says_so_and_the_parent_goes_on(program):
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")


async def test_a_second_system_on_a_file_that_is_not_shared_is_told(tmp_path):
    async with hq.open(tmp_path / "hq.db", access="exclusive"):
        with pytest.raises(hq.DatabaseInUse):
            async with hq.open(tmp_path / "hq.db", access="exclusive"):
                pass
