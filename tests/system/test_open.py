"""What hq.open opens, what it refuses, and what a program gets when it imports hq."""

import inspect
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

import hq
from hq import errors

HEAVY = ("aiosqlite", "alembic", "httpx", "hypercorn", "quart", "sqlalchemy")


async def test_memory_opens_a_system_that_forgets():
    async with hq.open("memory:") as system:
        await system.create_queue("emails")

    async with hq.open("memory:") as system:
        assert await system.queues() == []


@pytest.mark.parametrize("spelling", [str, Path, "sqlite:///{}".format])
async def test_a_file_keeps_what_was_enqueued(tmp_path, spelling):
    file = spelling(tmp_path / "hq.db")
    async with hq.open(file) as system:
        queue = await system.create_queue("emails")
        accepted = await queue.enqueue("hello")

    async with hq.open(file) as system:
        [message] = await system.queue("emails").receive()
    assert (message.id, message.payload) == (accepted.id, "hello")


async def test_three_slashes_name_a_path_from_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with hq.open("sqlite:///here.db"):
        pass
    assert await anyio.Path(tmp_path / "here.db").exists()


@pytest.mark.parametrize(
    "url",
    ["redis://localhost", "memory://", "sqlite://hq.db", "sqlite:///", "", ":memory:", "sqlite:///a?b=c"],
)
def test_any_other_url_is_told_what_hq_opens(url):
    with pytest.raises(hq.UnsupportedUrl, match=r"memory:, sqlite:///path, a path, postgresql://"):
        hq.open(url)


async def test_an_error_while_opening_comes_out_as_itself(tmp_path):
    with pytest.raises(hq.DatabaseMissing):
        async with hq.open(tmp_path / "nowhere" / "hq.db"):
            pass


async def test_an_error_of_the_block_comes_out_as_itself(url):
    with pytest.raises(ZeroDivisionError):
        async with hq.open(url):
            raise ZeroDivisionError


async def test_a_cancelled_block_leaves_the_file_to_the_next(tmp_path):
    with anyio.CancelScope() as scope:
        async with hq.open(tmp_path / "hq.db") as system:
            queue = await system.create_queue("emails")
            await queue.enqueue(b"kept")
            scope.cancel()
            await anyio.lowlevel.checkpoint()

    async with hq.open(tmp_path / "hq.db") as system:
        assert (await system.queue("emails").stats()).ready == 1


def test_importing_hq_imports_no_database_and_no_server():
    program = "import sys, hq; print(*sorted(name.partition('.')[0] for name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(HEAVY) & set(run.stdout.split())


def test_every_error_is_at_hand_as_hq_and_its_name():
    told = [
        name for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, Exception)
    ]
    assert [name for name in told if getattr(hq, name, None) is not vars(errors)[name]] == []
    assert set(told) <= set(hq.__all__)
