"""A SQLite file shared by processes: whoever comes second asks the first, and takes over from it."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

import hq
from hq.client import listening

HOLDER = """
import os, sys, time, hq

with hq.blocking.open(sys.argv[1]) as system:
    queue = system.create_queue("emails")
    queue.enqueue("of the holder")
    {then}
    print("ready", flush=True)
    time.sleep(600)
"""

FORKS = """
    if not os.fork():
        time.sleep(60)
        os._exit(0)
"""


FORKS_WHEN_TOLD = """
    print("ready", flush=True)
    sys.stdin.readline()
    if not os.fork():
        time.sleep(60)
        os._exit(0)
"""


@pytest.fixture
def file(tmp_path):
    return tmp_path / "hq.db"


@pytest.fixture
def holder(file, request):
    """Another process that holds the file."""
    program = HOLDER.format(then=getattr(request, "param", "pass").strip())
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()


async def test_the_second_sees_what_the_first_has(file, holder):
    async with hq.open(file) as system:
        [message] = await system.queue("emails").receive()
        assert message.payload == "of the holder"
        await message.complete()


async def test_only_the_user_may_connect(file):
    async with hq.open(file):
        mode = (await anyio.Path(f"{file}-socket").stat()).st_mode
    assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)
    assert not await anyio.Path(f"{file}-socket").exists()


async def test_a_system_in_memory_opens_no_socket(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with hq.open("memory:"):
        assert [path async for path in anyio.Path(tmp_path).iterdir()] == []


async def test_when_the_holder_is_killed_another_takes_over(file, holder):
    async with hq.open(file) as system:
        queue = system.queue("emails")
        await queue.enqueue("before")
        holder.kill()
        await queue.enqueue("after")
        payloads = [message.payload for message in await queue.receive(10)]
    assert payloads == ["of the holder", "before", "after"]


async def test_when_the_holder_closes_a_long_poll_goes_on_with_the_next(file):
    found = []
    async with hq.open(file) as first:
        await first.create_queue("emails")
        async with hq.open(file) as second, anyio.create_task_group() as tasks:

            async def wait():
                found.extend(await second.queue("emails").receive(wait_ms=60_000))

            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            await first.close()
            await second.queue("emails").enqueue("late")
    assert [message.payload for message in found] == ["late"]


async def test_a_consumer_and_its_message_outlive_the_holder(file, holder):
    async with hq.open(file) as system:
        queue = system.queue("emails")
        with anyio.fail_after(20):
            async for message in queue.consume():
                async with message:
                    if message.payload == "the last":
                        break
                    holder.kill()
                    await queue.enqueue("the last")
        assert (await queue.stats()).completed == 2


async def test_events_go_on_after_the_holder(file, holder):
    async with hq.open(file) as system, system.events(kinds=["enqueued"]) as events:
        queue = system.queue("emails")
        accepted = [await queue.enqueue("before")]
        holder.kill()
        accepted.append(await queue.enqueue("after"))
        with anyio.fail_after(20):
            told = [(await anext(events)).message_id for _ in accepted]
    assert told == [one.id for one in accepted]


async def test_ticks_go_on_after_the_holder_though_nobody_asks(file, holder):
    async with hq.open(file) as system:
        queue = system.queue("emails")
        await queue.purge()
        await queue.set_schedule("often", "tick", every_ms=50)
        [before] = await queue.receive(wait_ms=20_000)
        holder.kill()
        received = []
        with anyio.fail_after(20):
            while not [one for one in received if one.enqueued_at > before.enqueued_at + 500]:
                received += await queue.receive(10, wait_ms=1_000)


@pytest.mark.parametrize("holder", [FORKS], indirect=True)
async def test_the_child_of_a_killed_holder_does_not_keep_the_file(file, holder):
    holder.kill()
    holder.wait()
    with anyio.fail_after(10):
        async with hq.open(file, access="exclusive") as system:
            assert (await system.queue("emails").stats()).ready == 1


@pytest.mark.parametrize("holder", [FORKS_WHEN_TOLD], indirect=True)
async def test_the_child_of_a_killed_holder_keeps_nobody_waiting_on_its_connections(file, holder):
    async with hq.open(file) as system, system.events(kinds=["enqueued"]) as events:
        queue = system.queue("emails")
        accepted = [await queue.enqueue("before")]
        told = [(await anext(events)).message_id]
        holder.stdin.write("fork\n")
        holder.stdin.flush()
        assert await anyio.to_thread.run_sync(holder.stdout.readline) == "ready\n"
        holder.kill()
        with anyio.fail_after(10):
            accepted.append(await queue.enqueue("after"))
            told.append((await anext(events)).message_id)
    assert told == [one.id for one in accepted]


async def test_a_file_that_is_held_exclusively_is_in_use(file):
    async with hq.open(file, access="exclusive"):
        assert not await anyio.Path(f"{file}-socket").exists()
        with pytest.raises(hq.DatabaseInUse, match=str(os.getpid())):
            async with hq.open(file):
                pass


async def test_without_a_server_to_run_a_file_is_in_use(file, monkeypatch):
    monkeypatch.setattr(listening, "NEEDED", ("no_such_library",))
    async with hq.open(file):
        with pytest.raises(hq.DatabaseInUse):
            async with hq.open(file):
                pass


async def test_a_socket_whose_path_would_be_too_long_is_not_opened(tmp_path, caplog):
    folder = tmp_path / ("long" * 25)
    await anyio.Path(folder).mkdir()
    async with hq.open(folder / "hq.db") as system:
        await system.create_queue("emails")
    assert "too long" in caplog.text


async def test_access_is_one_of_two_words():
    with pytest.raises(hq.InvalidInput, match="'shared' or 'exclusive'"):
        hq.open("memory:", access="public")


def test_a_socket_is_beside_its_file():
    assert listening.socket_beside("/a/b.db") == Path("/a/b.db-socket")
